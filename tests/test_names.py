"""Names: no two classes share one, and the options that messages name are those of the commands."""

import ast
import re
from pathlib import Path

import pytest

from ga3c_tf.cli.main import cli

ROOT = Path(__file__).resolve().parents[1]
MODULES = [*(ROOT / "ga3c_tf").rglob("*.py"), *(ROOT / "reproduce").rglob("*.py")]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
OTHERS = {"--help", "--no", "--lr", "--error-unmatch", "--porcelain", "--head"}
"""The help, the start of an option's name, another program's name in comments, and options of git and Ray."""
OPTIONS = {
    name
    for command in cli.commands.values()
    for parameter in command.params
    for name in (*parameter.opts, *parameter.secondary_opts)
}


def classes_of(*folders):
    """The files with a class of this name, by name."""
    places = {}
    for folder in folders:
        files = [
            file
            for file in sorted(folder.rglob("*.py"))
            if not file.is_relative_to(ROOT / "ga3c_tf" / "reproduce")
        ]
        for file in files:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, []).append(str(file.relative_to(ROOT)))
    return places


def test_no_two_classes_have_one_name():
    places = classes_of(ROOT / "ga3c_tf", ROOT / "reproduce")
    assert len(places) > 100
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_option_that_a_text_names_exists(module):
    tree = ast.parse(module.read_text())
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    named = {option for text in texts for option in OPTION.findall(text)}
    assert named - OTHERS <= OPTIONS
