"""Numbers and tables as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from ga3c_tf.runs.stats import bootstrap_interval


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    cells = [list(header), ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


def number(value: float | None) -> str:
    """Four significant digits, thousands grouped; '-' for None."""
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def spread(values: Sequence[float], of: str = "seed") -> str:
    """Mean, 95 % bootstrap interval of it where there are two or more values, and how many there are."""
    if not values:
        return "-"
    count = f"{len(values)} {of}{'s' if len(values) > 1 else ''}"
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{number(mean)} ({count})"
    low, high = bootstrap_interval(values)
    return f"{number(mean)} [{number(low)}, {number(high)}] ({count})"
