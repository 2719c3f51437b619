"""Programs on several emulated devices, as many as EMULATOR_DEVICES says."""

from __future__ import annotations

import pytest

from common.emulator.tests.test_program import emulate
from common.paths import ROOT

pytestmark = pytest.mark.needs("g++")
FEATURE = ROOT / "common" / "emulator" / "programs" / "features" / "several_devices.cu"


@pytest.mark.parametrize("devices", ["1", "2"])
def test_a_program_uses_all_devices(devices):
    done = emulate(FEATURE.relative_to(ROOT), EMULATOR_DEVICES=devices)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
    assert "no problem found" in done.stderr


def test_memory_and_streams_of_another_device_are_reported():
    done = emulate("other_device", EMULATOR_DEVICES="2")
    assert done.stdout.splitlines() == ["invalid resource handle", "an illegal memory access was encountered"]
    assert done.returncode == 66
    stream = "a launch is given a stream of device 0, but the current device is 1"
    assert f"error: {stream}, in common/emulator/tests/programs/other_device.cu:12 (launch)" in done.stderr
    memory = "writes x, which is memory of device 0, but the kernel runs on device 1"
    assert f"error: {memory}, in common/emulator/tests/programs/other_device.cu:4 (memory)" in done.stderr
    assert "device 1 needs cudaDeviceEnablePeerAccess(0, 0) for that" in done.stderr


def test_one_device_is_the_default():
    done = emulate("other_device", EMULATOR_DEVICES="1")
    assert done.stdout.splitlines()[0] == "invalid device ordinal"
