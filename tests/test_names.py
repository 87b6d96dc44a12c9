"""A class is found by its name alone: no two classes of the source share one."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


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
