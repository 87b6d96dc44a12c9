"""Hooks of the documentation site: which files of the repository are its pages, and how they differ from
GitHub's.

Every file keeps its path, so that the links between pages lead to the same places on GitHub and on the site.
"""

import dataclasses
import json
import posixpath
import re
from pathlib import Path

import mermaidx
from mkdocs.structure.files import File, Files

from ga3c_tf.config import Config, spelled
from ga3c_tf.config.declaration import GROUPS, plain_text
from ga3c_tf.config.presets import PRESETS, USUAL_PRESET
from ga3c_tf.config.rules import only_with
from ga3c_tf.config.settings import BEYOND_PAPER
from ga3c_tf.experience.columns import COLUMNS, along

ROOT = Path(__file__).resolve().parents[1]
CONTENT = (
    "*.md",
    "docs/*.md",
    "docs/*.png",
    "docs/*.svg",
    "docs/*.css",
    "docs/data/*",
    "docs/reference/*.md",
    "results/*.md",
    "results/pages/*.md",
    "results/figures/*.svg",
    "results/*.csv.xz",
    "results/paper/*.csv",
    "results/weights/*.csv",
    "results/weights/**/*.md",
    "results/weights/**/*.svg",
    "results/weights/**/*.gif",
)
NOTEBOOK = "examples/quickstart.ipynb"
SHOWN_ON = {
    "ga3c_tf/api/__init__.py": "docs/reference/python.md",
    "ga3c_tf/config/settings.py": "docs/reference/settings.md",
    NOTEBOOK: "examples/quickstart.md",
}
"""Pages of the site that show what links to these files are for."""
LINK = re.compile(r"(?<!!)\[([^][]*)\]\(([^)\s#]+)\)")
FILE_AS_TEXT = re.compile(r"\[`?[\w/.-]+\.(?:md|ipynb)`?\]\(([^)\s#]+)((?:#[^)\s]*)?)\)")
"""A link to a page whose text is the name of a file."""
REPOSITORY_ONLY = re.compile(r"<!-- in the repository -->.*?<!-- end -->", re.DOTALL)
TARGET = re.compile(r"(?<=\]\()([^)\s#]+)(?=\))")


def on_files(files: Files, config) -> Files:
    """Replace the files of docs/ by the site's content, with paths from the root of the repository."""
    kept = [file for file in files if file.src_dir != config.docs_dir]
    paths = sorted(path for pattern in CONTENT for path in ROOT.glob(pattern))
    content = [
        File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)) for path in paths
    ]
    notebook = File.generated(config, SHOWN_ON[NOTEBOOK], content=_notebook(ROOT / NOTEBOOK))
    return Files([*kept, *content, notebook])


def on_page_markdown(markdown: str, page, config, files: Files) -> str:
    """Adapt a page to the site: links, diagrams, folded parts, and the generated tables."""
    folder = posixpath.dirname(page.file.src_uri)
    markdown = REPOSITORY_ONLY.sub("", markdown)
    markdown = FILE_AS_TEXT.sub(lambda match: _titled(match, folder), markdown)
    markdown = TARGET.sub(lambda match: _page_for(match[0], folder), markdown)
    markdown = LINK.sub(lambda match: _text_of_source(match, folder, files), markdown)
    markdown = re.sub(r"```mermaid\n(.*?)```", lambda match: _diagram(match[1]), markdown, flags=re.DOTALL)
    markdown = markdown.replace("<details>", '<details markdown="1">')
    for mark, table in (("<!-- settings -->", _settings), ("<!-- columns -->", _columns)):
        if mark in markdown:
            markdown = markdown.replace(mark, table())
    return markdown


def on_page_content(html: str, page, config, files: Files) -> str:
    """Show the value of the default preset where a signature has the name of the constant."""
    return html.replace(">USUAL_PRESET<", f'>"{USUAL_PRESET}"<')


def _titled(match: re.Match, folder: str) -> str:
    """Return a link to a page with the page's heading as its text."""
    target, anchor = match.groups()
    file = ROOT / posixpath.normpath(posixpath.join(folder, target))
    text = (
        "".join(json.loads(file.read_text("utf-8"))["cells"][0]["source"]) if file.suffix == ".ipynb" else ""
    )
    heading = (
        re.search(r"^# (.+)$", text or file.read_text("utf-8"), re.MULTILINE) if file.is_file() else None
    )
    return f"[{heading[1]}]({target}{anchor})" if heading else match[0]


def _page_for(target: str, folder: str) -> str:
    """Return a link's target on the site: the card in a folder, which GitHub shows, or what shows a file."""
    path = posixpath.normpath(posixpath.join(folder, target))
    if path in SHOWN_ON:
        return posixpath.relpath(SHOWN_ON[path], folder or ".")
    return f"{target}/README.md" if (ROOT / path / "README.md").exists() else target


def _text_of_source(match: re.Match, folder: str, files: Files) -> str:
    """Return plain text in place of a link to a file of the repository that is not on the site."""
    label, target = match.groups()
    path = posixpath.normpath(posixpath.join(folder, target))
    if files.get_file_from_path(path) or not (ROOT / path).is_file():
        return match[0]
    return f"`{label}`" if label in path else f"{label} (`{path}`)"


def _notebook(file: Path) -> str:
    """Return the cells of a notebook, with what they have shown, as a page."""
    parts = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += [_output(output) for output in cell.get("outputs", [])]
    return "\n\n".join(parts)


def _output(output: dict) -> str:
    """Return what a cell has printed, or the picture that it has drawn."""
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text'])}```"
    picture = output["data"]["image/png"].strip()
    return f'<img alt="the picture that this cell draws" src="data:image/png;base64,{picture}">'


def _diagram(source: str) -> str:
    """Return a Mermaid diagram as a picture, which needs no script in the browser."""
    return f'<div class="diagram">{mermaidx.render(source).svg()}</div>'


def _settings() -> str:
    """Return one table for each group of the settings."""
    groups: dict[str, list[tuple[str, ...]]] = {group: [] for group in GROUPS}
    usual = PRESETS[USUAL_PRESET]
    for setting in dataclasses.fields(Config):
        rule = setting.metadata
        option = "the first argument" if setting.name == "env_id" else f"`{spelled(setting.name)}`"
        start = usual.get(setting.name, setting.default)
        default = "" if start is None else f"`{plain_text(start)}`"
        if start != setting.default:
            default += f" (`Config`: `{plain_text(setting.default)}`)"
        meaning = rule["help"].replace("<", "&lt;") + _rules(setting)
        groups[rule["group"]].append((f"`{setting.name}`", option, default, _limits(rule), meaning))
    heads = ("setting", "option", "default", "values", "meaning")
    return "\n\n".join(
        f"## {group.capitalize()}\n\nThis group has {GROUPS[group]}.\n\n{_table(heads, rows)}"
        for group, rows in groups.items()
    )


def _rules(setting) -> str:
    """Return the rules of a setting beside others, as sentences."""
    text = " Not in the paper." if setting.name in BEYOND_PAPER else ""
    if options := only_with(setting.name):
        text += f" Only with {' and '.join(f'`{option}`' for option in options)}."
    if reason := setting.metadata["fixed"]:
        text += f" Fixed for a run: {reason}."
    return text


def _limits(rule) -> str:
    """Return the values that a setting may have, in words."""
    if rule["choices"]:
        return ", ".join(f"`{choice}`" for choice in rule["choices"])
    bounds = {"above": "above", "low": "from", "high": "to"}
    return " ".join(
        f"{word} {plain_text(rule[name])}" for name, word in bounds.items() if rule[name] is not None
    )


def _columns() -> str:
    """Return the tables of the columns of steps and of segments."""
    parts = []
    for title, size, axis in (("Columns of steps", "B", "step"), ("Columns of segments", "S", "segment")):
        rows = []
        for column in along(COLUMNS, axis):
            shape = ", ".join(map(str, (size, *column.shape)))
            rows.append((f"`{column.name}`", f"{column.dtype.__name__} [{shape}]", column.meaning))
        parts.append(f"## {title}\n\n{_table(('column', 'type', 'meaning'), rows)}")
    return "\n\n".join(parts)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
