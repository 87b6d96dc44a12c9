"""Where TensorFlow is told to use oneDNN."""

import pytest

from ga3c_tf.host import onednn

ON_AVX2 = {"flags": ["avx2"]}
ELSEWHERE = {"flags": []}


@pytest.mark.parametrize(
    ("machine", "state_shape", "users", "decided"),
    [
        (ON_AVX2, (84, 84, 4), None, "on"),
        (ON_AVX2, (10, 10, 10), None, "as TensorFlow decides"),
        (ON_AVX2, (4,), None, "as TensorFlow decides"),
        (ELSEWHERE, (84, 84, 4), None, "as TensorFlow decides"),
        (ON_AVX2, (84, 84, 4), "0", "off"),
        (ELSEWHERE, (4,), "1", "on"),
    ],
)
def test_onednn_is_on_for_screens_with_avx2_unless_the_user_decides(monkeypatch, machine, state_shape, users, decided):
    monkeypatch.setattr(onednn, "processor", lambda: machine)
    monkeypatch.setenv(onednn.SWITCH, users or "")  # put back afterwards as it was
    if users is None:
        monkeypatch.delenv(onednn.SWITCH)
    onednn.enable_onednn(state_shape)
    assert onednn.onednn() == decided
