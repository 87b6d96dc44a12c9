"""The documentation site: it builds without a warning, and a browser shows its pages as they are meant."""

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from mkdocs.config import load_config
from playwright.sync_api import sync_playwright

from ga3c_tf.config import Config

ROOT = Path(__file__).resolve().parents[1]
SCREENSHOTS = ROOT / "build" / "screenshots"
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
OF_EACH_KIND = (
    ".",
    "CHANGELOG",
    "docs/architecture",
    "docs/reference/python",
    "docs/reference/settings",
    "docs/usage",
    "examples/quickstart",
    "results",
    "results/pages/adjustment",
    "results/weights/pong",
)
"""Pages with code, diagrams, docstrings, tables, a notebook, pictures and a film."""


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site):
    """The address of a server that shows the site."""
    handler = functools.partial(QuietHandler, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, timeout=0)
        yield browser
        browser.close()


@pytest.fixture
def window(browser, address):
    """A page of the browser, and the list of what went wrong in it. It reaches no other site."""
    page = browser.new_page()
    page.set_default_timeout(0)
    troubles = []

    def only_this_site(route):
        if route.request.url.startswith(address):
            route.continue_()
            return
        troubles.append(f"asks for {route.request.url}")
        route.abort()

    page.route("**/*", only_this_site)
    page.on(
        "console",
        lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on(
        "response",
        lambda reply: troubles.append(f"{reply.status} {reply.url}") if reply.status >= 400 else None,
    )
    yield page, troubles
    page.close()


def pages_of(site):
    return sorted(file.parent.relative_to(site).as_posix() for file in site.rglob("index.html"))


def test_the_site_has_every_page_of_the_documentation(site):
    pages = set(pages_of(site))
    assert {f"docs/{file.stem}" for file in (ROOT / "docs").glob("*.md") if file.stem != "README"} <= pages
    assert {
        ".",
        "docs",
        "examples/quickstart",
        "results",
        "results/DIFFERENCES",
        "results/weights/pong",
    } <= pages
    assert {"CHANGELOG", "CONTRIBUTING"} <= pages


def test_what_is_meant_for_readers_of_the_repository_is_not_on_the_site(site):
    """Names of files as texts of links, the name of a constant as a default, and how to build the site."""
    texts = {name: (site / name / "index.html").read_text() for name in pages_of(site)}
    links = r"<a [^>]*>(?:<code>)?[\w/.-]+\.(?:md|ipynb)(?:</code>)?</a>"
    assert {name: found for name, text in texts.items() if (found := re.findall(links, text))} == {}
    assert ">USUAL_PRESET<" not in texts["docs/reference/python"]
    assert (
        "&quot;default&quot;" in texts["docs/reference/python"]
        or '"default"' in texts["docs/reference/python"]
    )
    assert "make docs" not in texts["docs"] and "User guide" in texts["docs"]


def test_pages_lead_to_the_next_one_and_to_the_repository(site, monkeypatch):
    assert "md-footer__link--next" in (site / "docs" / "usage" / "index.html").read_text()
    monkeypatch.setenv("GA3C_TF_REPOSITORY", "https://example.org/ga3c_tf")
    assert load_config(str(ROOT / "mkdocs.yml")).repo_url == "https://example.org/ga3c_tf"


def test_the_workflow_publishes_what_make_docs_builds():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "docs.yml").read_text())
    steps = workflow["jobs"]["publish"]["steps"]
    assert "make docs" in [step.get("run") for step in steps]
    [published] = [step["with"]["path"] for step in steps if "upload-pages-artifact" in step.get("uses", "")]
    assert ROOT / published == Path(load_config(str(ROOT / "mkdocs.yml")).site_dir)


def check_rendering(window, address, names):
    page, troubles = window
    for name in names:
        page.set_viewport_size(DESKTOP)
        page.goto(f"{address}/{name}/")
        assert page.locator("article h1").count() == 1, name
        broken = "Array.from(document.images).filter(image => !image.naturalWidth).map(image => image.src)"
        assert page.evaluate(broken) == [], name
        for size in (DESKTOP, PHONE):
            page.set_viewport_size(size)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], name
        assert troubles == [], name


def test_a_page_of_each_kind_renders_without_errors_and_fits_the_screen(address, window):
    check_rendering(window, address, OF_EACH_KIND)


@pytest.mark.slow  # half a minute
def test_all_pages_render_without_errors_and_fit_the_screen(site, address, window):
    check_rendering(window, address, pages_of(site))


@pytest.mark.parametrize("width", [1280, 1366, 1920])
def test_a_diagram_is_as_wide_as_the_text(address, window, width):
    page, _ = window
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{address}/docs/architecture/")
    hidden = (
        "Array.from(document.querySelectorAll('.diagram')).map(each => each.scrollWidth - each.clientWidth)"
    )
    assert max(page.evaluate(hidden)) <= 1


def test_code_is_not_cut_off_on_a_phone(address, window):
    page, _ = window
    page.set_viewport_size(PHONE)
    page.goto(f"{address}/")
    hidden = (
        "Array.from(document.querySelectorAll('pre > code')).map(each => each.scrollWidth - each.clientWidth)"
    )
    assert max(page.evaluate(hidden)) <= 1


def test_search_finds_a_page_and_a_function(address, window):
    page, troubles = window
    for words, found in (("policy lag", "docs/policy-lag/"), ("load_agent", "docs/reference/python/")):
        page.goto(f"{address}/")
        page.get_by_role("textbox", name="Search").fill(words)
        page.locator(f".md-search-result__link[href*='{found}']").first.wait_for(state="attached")
    assert troubles == []


def test_what_github_shows_by_itself_is_on_the_site_too(address, window):
    page, _ = window
    page.goto(f"{address}/docs/architecture/")
    assert "prediction queue" in page.locator(".diagram svg").text_content()
    page.goto(f"{address}/results/pages/adjustment/")
    rows = page.locator("details").first
    rows.locator("summary").click()
    assert "agents" in rows.locator("table").inner_text()


def test_the_reference_has_docstrings_settings_and_columns(address, window):
    page, _ = window
    page.goto(f"{address}/docs/reference/python/")
    assert "Train an agent until its budget is reached" in page.locator("article").inner_text()
    page.goto(f"{address}/docs/reference/settings/")
    row = page.locator("tr", has=page.get_by_text("num_agents", exact=True)).inner_text()
    help_text = Config.__dataclass_fields__["num_agents"].metadata["help"]
    assert row.split("\t") == ["num_agents", "--agents", "32", "from 1 to 4096", help_text]
    row = page.locator("tr", has=page.get_by_text("adjustment", exact=True)).inner_text()
    assert row.split("\t")[2] == "fast (Config: off)"
    page.goto(f"{address}/docs/reference/model/")
    row = page.locator("tr", has=page.get_by_text("mu_log_probabilities", exact=True)).inner_text()
    assert row.split("\t") == ["mu_log_probabilities", "float32 [B]", "log mu(action | state), in nats"]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_screenshots_are_written_to_be_looked_at(address, window, size):
    page, _ = window
    page.set_viewport_size(size)
    for name in ("", "docs/usage/", "docs/architecture/", "docs/reference/python/", "results/"):
        page.goto(f"{address}/{name}")
        file = SCREENSHOTS / f"{name.strip('/').replace('/', '-') or 'home'}-{size['width']}.png"
        page.screenshot(path=file)
        assert file.stat().st_size > 10_000
