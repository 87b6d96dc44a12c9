"""Segments with the numbers that a reference implementation gives for them."""

import json
from pathlib import Path

SEGMENTS = json.loads((Path(__file__).parent / "data" / "corrections.json").read_text())
