"""Which processor it is, and how fast the machine is at the moment."""

import dataclasses

import pytest

from ga3c_tf.host import machine
from ga3c_tf.host.calibration import Calibration, agree, calibrate, mean

SLOW = Calibration(gflops=26.7, copy_gb_s=5.0, frames_s=4000.0)

INTEL = """\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
model name\t: Intel(R) Xeon(R) Platinum 8488C
stepping\t: 8
flags\t\t: fpu avx avx2 avx512f avx512_bf16 avx512_vnni

processor\t: 1
vendor_id\t: Another
"""
ARM = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"


@pytest.mark.parametrize(
    ("cpuinfo", "identity", "flags"),
    [
        (INTEL, ("GenuineIntel", "6", "143", "8"), ["avx2", "avx512f", "avx512_bf16", "avx512_vnni"]),
        (ARM, (None, None, None, None), []),
        (None, (None, None, None, None), []),
    ],
)
def test_a_processor_is_identified_by_what_the_kernel_says(tmp_path, monkeypatch, cpuinfo, identity, flags):
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(machine, "CACHES", tmp_path)
    monkeypatch.setattr(machine, "cpu_quota", lambda: 1.5 if cpuinfo else float("inf"))
    if cpuinfo:
        machine.CPUINFO.write_text(cpuinfo)
    for number, texts in enumerate([("1", "Data", "32K"), ("2", "Unified", "512K")]):
        (tmp_path / f"index{number}").mkdir()
        for name, text in zip(("level", "type", "size"), texts, strict=True):
            (tmp_path / f"index{number}" / name).write_text(text + "\n")
    found = machine.processor()
    assert tuple(found[name] for name in ("vendor", "family", "model", "stepping")) == identity
    assert (found["flags"], found["caches"]) == (flags, {"L1 data": "32K", "L2": "512K"})
    assert found["quota"] == (1.5 if cpuinfo else None)


def test_calibrations_agree_within_15_percent_in_both_kinds_of_work_of_a_unit():
    assert agree([]) and agree([SLOW]) and agree([SLOW, dataclasses.replace(SLOW, copy_gb_s=10.0)])
    for name in ("gflops", "frames_s"):
        value = getattr(SLOW, name)
        near = dataclasses.replace(SLOW, **{name: 1.14 * value})
        assert agree([SLOW, near, SLOW])
        assert not agree([near, SLOW, dataclasses.replace(SLOW, **{name: 0.98 * value})])


def test_a_unit_is_four_frames_and_the_small_networks_arithmetic():
    assert SLOW.unit == pytest.approx(1 / (0.001 + 0.001))
    assert mean([SLOW, Calibration(80.1, 7.0, 8000.0)]) == Calibration(pytest.approx(53.4), 6.0, 6000.0)


def test_this_machine_is_calibrated_in_about_the_time_given():
    found = calibrate(0.3)
    assert 0.5 < found.gflops < 2000 and 0.1 < found.copy_gb_s < 500 and 100 < found.frames_s < 200_000
