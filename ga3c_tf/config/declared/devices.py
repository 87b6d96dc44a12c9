"""Settings of the devices that predict and train."""

from __future__ import annotations

from dataclasses import dataclass

from ga3c_tf.config.declaration import ACTOR_CRITIC, SET, beside, declare
from ga3c_tf.config.declared.workers import MOST, ONE_MODEL

WITH_DEVICES = beside(devices=SET)


@dataclass(frozen=True)
class DeviceSettings:
    """One device, or several with a replica of the network on each."""

    device: str = declare("auto", "run", "'auto' (GPU when present), 'cpu', 'gpu' or 'gpu:N'.")
    devices: str | None = declare(
        None,
        "workers",
        "Devices with a replica of the network each, such as 'gpu:0,gpu:1', or 'cpu:4' for so many logical "
        "devices of the CPU, to try it (default: --device alone). Any predictor and trainer uses them.",
        systems=ONE_MODEL,
        algorithms=ACTOR_CRITIC,
        refused_elsewhere=True,
        excludes=[beside(device=SET)],
    )
    sync: str = declare(
        "mean",
        "workers",
        "How several devices train: 'mean' (each has a part of the batch, and all make the update on their "
        "gradients together, as one device would) or 'none' (each makes updates of central weights with its "
        "copy of them, without waiting for others).",
        choices=("mean", "none"),
        read_with=[WITH_DEVICES],
    )
    pull_updates: int = declare(
        4,
        "advanced",
        "With --sync none: a device copies the central weights once its copy is so many updates old.",
        low=1,
        high=MOST,
        read_with=[WITH_DEVICES, beside(sync="none")],
    )
