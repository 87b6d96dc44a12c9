"""Where TensorFlow is told to use oneDNN."""

import pytest

from ga3c_tf.environments.environment import EnvironmentSpec
from ga3c_tf.host import onednn

ON_AVX2 = {"flags": ["avx2"]}
ELSEWHERE = {"flags": []}


@pytest.mark.parametrize(
    ("machine", "users", "decided"),
    [
        (ON_AVX2, None, "on"),
        (ELSEWHERE, None, "as TensorFlow decides"),
        (ON_AVX2, "0", "off"),
        (ON_AVX2, "False", "off"),
        (ELSEWHERE, "1", "on"),
    ],
)
def test_onednn_is_on_with_avx2_unless_the_user_decides(monkeypatch, machine, users, decided):
    monkeypatch.setattr(onednn, "processor", lambda: machine)
    monkeypatch.setenv(onednn.SWITCH, users or "")  # put back afterwards as it was
    if users is None:
        monkeypatch.delenv(onednn.SWITCH)
    onednn.enable_onednn()
    assert onednn.onednn() == decided


@pytest.mark.parametrize(("shape", "screen"), [((84, 84, 4), True), ((10, 10, 10), False), ((28_224,), False)])
def test_what_counts_as_a_screen(shape, screen):
    assert EnvironmentSpec(shape, "uint8", 2).is_screen is screen
