"""Where TensorFlow is told to use oneDNN."""

import os
import subprocess
import sys

import pytest

from ga3c_tf.experience.spec import EnvironmentSpec
from ga3c_tf.host import libraries

ON_AVX2 = {"flags": ["avx2"]}
ON_AVX512 = {"flags": ["avx2", "avx512_vnni"]}
ELSEWHERE = {"flags": []}


@pytest.mark.parametrize(
    ("machine", "users", "decided"),
    [
        (ON_AVX2, None, "on"),
        (ON_AVX512, None, "on"),
        (ELSEWHERE, None, "as TensorFlow decides"),
        (ON_AVX2, "0", "off"),
        (ON_AVX2, "False", "off"),
        (ELSEWHERE, "1", "on"),
    ],
)
def test_onednn_is_on_with_avx2_unless_the_user_decides(monkeypatch, machine, users, decided):
    monkeypatch.setattr(libraries, "processor", lambda: machine)
    monkeypatch.setenv(libraries.SWITCH, users or "")  # put back afterwards as it was
    if users is None:
        monkeypatch.delenv(libraries.SWITCH)
    before = libraries.onednn()
    libraries.enable_onednn()
    assert libraries.onednn() == decided
    assert libraries.enabled_too_late(before) is (machine is ON_AVX2 and users is None)
    assert not libraries.enabled_too_late(libraries.onednn())


TRAINING = """
import sys
from ga3c_tf.config import Config
from ga3c_tf.runner import new_training
config = Config(env_id=sys.argv[1], num_agents=1, steps=1, seed=1, run_dir=sys.argv[2])
_, run = new_training(config, ["train"], print)
run.close()
from ga3c_tf.model.tensorflow import ONEDNN
print(ONEDNN)
"""


@pytest.mark.skipif("avx2" not in libraries.processor()["flags"], reason="needs a processor with AVX2")
@pytest.mark.parametrize(
    ("env_id", "decided"),
    [
        ("ALE/Pong-v5", "on"),
        pytest.param("CartPole-v1", "as TensorFlow decides", marks=pytest.mark.slow),
    ],
)
def test_a_training_on_screens_decides_before_tensorflow_is_imported(tmp_path, env_id, decided):
    without = {name: value for name, value in os.environ.items() if name != libraries.SWITCH}
    words = [sys.executable, "-c", TRAINING, env_id, tmp_path / "run"]
    done = subprocess.run(words, capture_output=True, text=True, env=without)
    assert done.stdout.splitlines()[-1:] == [decided], done.stderr
    assert f'"onednn": "{decided}"' in (tmp_path / "run" / "meta.json").read_text()


@pytest.mark.parametrize(
    ("shape", "screen"), [((84, 84, 4), True), ((10, 10, 10), False), ((28_224,), False)]
)
def test_what_counts_as_a_screen(shape, screen):
    assert EnvironmentSpec(shape, "uint8", 2).is_screen is screen
