"""The GPU's use, asked of a stand-in for NVIDIA's library; and silence where there is none."""

from types import SimpleNamespace

import pynvml
import pytest

from ga3c_tf.host import gpu


class FakeLibrary:
    """Two GPUs, of which the second does not tell how busy it is."""

    NVMLError = pynvml.NVMLError
    NVML_GPU_UTILIZATION_SAMPLES = pynvml.NVML_GPU_UTILIZATION_SAMPLES

    def __init__(self, driver=True):
        self.driver, self.busy, self.opened = driver, 0, 0
        self.samples = []

    def nvmlInit(self):
        self.opened += 1
        if not self.driver:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    def nvmlDeviceGetHandleByIndex(self, index):
        if index > 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return f"handle {index}"

    def nvmlDeviceGetHandleByUUID(self, name):
        if name != "GPU-abc":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return "handle 0"

    def nvmlDeviceGetUtilizationRates(self, handle):
        if handle != "handle 0":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(gpu=self.busy, memory=99)

    def nvmlDeviceGetSamples(self, handle, kind, since):
        newer = [sample for sample in self.samples if sample.timeStamp > since]
        if handle != "handle 0" or not newer:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, newer


@pytest.fixture
def library(monkeypatch):
    """Puts a library in the place of NVIDIA's."""

    def install(**options):
        fake = FakeLibrary(**options)
        monkeypatch.setattr(gpu, "pynvml", fake)
        return fake

    gpu._handle.cache_clear()
    yield install
    gpu._handle.cache_clear()


def test_the_gpu_is_asked_by_the_name_it_has_outside(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [gpu.gpu_id(device) for device in ("auto", "gpu", "gpu:2")] == ["0", "0", "2"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-abc")
    assert [gpu.gpu_id(device) for device in ("gpu", "gpu:1")] == ["3", "GPU-abc"]


@pytest.mark.parametrize("name", ["0", "GPU-abc"])
def test_each_question_is_answered_anew_by_a_library_that_is_opened_once(library, name):
    fake = library()
    answers = []
    for fake.busy in (37, 0, 100):
        answers += gpu.gpu_utilization(name)
    assert answers == [0.37, 0.0, 1.0] and fake.opened == 1


@pytest.mark.parametrize("name", ["1", "2", "GPU-xyz", "MIG-1"])
def test_a_gpu_that_does_not_tell_or_is_not_there_gives_nothing(library, name):
    library()
    assert gpu.gpu_utilization(name) == gpu.gpu_utilization(name) == []


def test_every_sample_is_read_once_and_without_samples_the_rate_is_given(library, monkeypatch):
    monkeypatch.setattr(gpu, "_newest", {})
    fake = library()
    for time, share in ((5, 10), (6, 90), (8, 40)):
        fake.samples.append(SimpleNamespace(timeStamp=time, sampleValue=SimpleNamespace(uiVal=share)))
    assert gpu.gpu_samples("0") == [0.1, 0.9, 0.4]
    fake.samples.append(SimpleNamespace(timeStamp=9, sampleValue=SimpleNamespace(uiVal=70)))
    assert gpu.gpu_samples("0") == [0.7]
    fake.busy = 37
    assert gpu.gpu_samples("0") == [0.37]
    assert gpu.gpu_samples("1") == gpu.gpu_samples("2") == []


def test_without_a_driver_it_is_looked_for_once_and_nothing_is_said(library, capfd):
    fake = library(driver=False)
    assert [gpu.gpu_utilization("0") for _ in range(3)] == [[], [], []] and fake.opened == 1
    assert capfd.readouterr() == ("", "")


def test_the_real_library_is_silent_where_there_is_no_such_gpu(capfd):
    assert gpu.gpu_utilization("99") == []
    assert capfd.readouterr() == ("", "")
