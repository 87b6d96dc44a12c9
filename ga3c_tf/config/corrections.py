"""The names of corrections of policy lag: parts of four axes, and published combinations of them."""

from __future__ import annotations

from ga3c_tf.errors import did_you_mean

DECOUPLED = ("decoupled", "decoupled-recompute", "decoupled-ewma")
AXES = {
    "weights": ("none", "epsilon", "is", "clipped-is", "one-step", "v-trace"),
    "masks": ("ratio-mask", "tv-mask", "negative-mask"),
    "trust regions": ("ppo", *DECOUPLED, "m2po"),
    "step scales": ("ess",),
}
"""The parts of a correction, by axis. A correction has at most one of each."""
PUBLISHED = {
    "decoupled-ppo": "clipped-is+decoupled",
    "icepop": "is+ratio-mask",
    "dppo-tv": "is+tv-mask",
    "deepseek-v3.2": "ppo+negative-mask",
    "vcpo": "clipped-is+ess",
    "impact": "v-trace+decoupled-ewma",
}
"""Combinations by their published names."""
PARTS = tuple(part for parts in AXES.values() for part in parts)
NAMES = (*PARTS, *PUBLISHED)
CLIPPED = ("ppo", *DECOUPLED)
"""Parts with the clip range --clip-ratio."""
PROXIMAL = ("decoupled-recompute", "decoupled-ewma")
"""Parts that need the answers of another policy than pi and mu."""
OF_LAG = tuple(part for part in PARTS if part not in ("none", "epsilon"))
"""Parts that do something only where pi and mu differ."""
WITHOUT_WEIGHT = {"epsilon": AXES["trust regions"]} | dict.fromkeys(
    ("is", "clipped-is", "one-step"), ("ppo", "m2po")
)
"""Weights that do nothing beside some trust regions, whose ratio is the weight, or has no floor."""


def parts_of(correction: str) -> tuple[str, ...]:
    """Return the parts of a correction such as 'v-trace+ratio-mask', or of one with a published name."""
    return tuple(part for name in correction.split("+") for part in PUBLISHED.get(name, name).split("+"))


def problem_of(correction: str) -> str | None:
    """Return why there is no such correction, in words; None if there is."""
    for name in correction.split("+"):
        if name not in NAMES:
            hint = did_you_mean(name, list(NAMES)) or f"; it must be one of {', '.join(NAMES)}"
            return f"{name!r} is no correction or part of one{hint}"
    parts = parts_of(correction)
    for axis, choices in AXES.items():
        chosen = [part for part in parts if part in choices]
        if len(chosen) > 1:
            return f"it has several {axis}, {' and '.join(chosen)}; give one"
    for weight, regions in WITHOUT_WEIGHT.items():
        beside = [part for part in parts if part in regions]
        if weight in parts and beside:
            return (
                f"{weight} does nothing beside {beside[0]}, which has a ratio of its own; leave {weight} out"
            )
    return None
