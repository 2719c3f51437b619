"""What notebook 09 says of device guards and of the recorded scaling."""

from __future__ import annotations

import os

import pytest

from common.pages.notebooks import NOTEBOOKS
from common.paths import ROOT
from common.studies.distributed import STUDY
from common.studies.distributed.traces import ideal_step, select
from support.proofs.files import notebook_files
from support.suite.warm import run_warm

pytestmark = pytest.mark.proof(
    "claims of notebooks",
    files=[*notebook_files("09_distributed"), "docs/results/studies/distributed_scaling.json"],
    uses=["common.inline", "support.labs"],
)

# Calls a launcher of the notebook with a tensor on one of two emulated devices.
ADD_ONE = """
import sys, torch
sys.path.insert(0, "tests")
from common.inline import inline
from support.labs import texts
notebook = texts("09_distributed")
names = ["without_guard", "with_guard"]
guards = inline("guards", notebook["GUARDS_CPP"], notebook["GUARDS_CU"], names, target="emulator")
x = torch.zeros(300)
try:
    getattr(guards, sys.argv[1])(x)
    print("right" if (x == 1).all() else "wrong")
except RuntimeError as error:
    print(error)
"""


@pytest.mark.needs("g++")
@pytest.mark.syllabus("9.2b")
@pytest.mark.parametrize(("function", "device"), [("without_guard", 0), ("with_guard", 0), ("with_guard", 1)])
def test_a_launcher_is_right_on_its_tensor_s_device(function, device):
    assert add_one(function, device).endswith("right")


@pytest.mark.needs("g++")
@pytest.mark.syllabus("9.2b")
def test_without_a_guard_the_second_device_reports_an_access_to_its_memory():
    report = add_one("without_guard", 1)
    assert "reads x, which is memory of device 1, but the kernel runs on device 0, in guards.cu:6" in report


def add_one(function: str, device: int) -> str:
    settings = {"EMULATOR_DEVICES": "2", "EMULATOR_TENSOR_DEVICE": str(device)}
    done = run_warm(ADD_ONE, function, cwd=ROOT, environment=os.environ | settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


MOST = 4  # GPUs of the record

# Scaling ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scaling() -> dict:
    return STUDY.read_record("scaling")


def row_of(scaling: dict, kind: str, processes: int) -> dict:
    (row,) = [row for row in scaling["rows"] if (row["scaling"], row["processes"]) == (kind, processes)]
    return row


@pytest.mark.syllabus("9.2d")
def test_the_numbers_of_scaling_are_those_of_the_record(scaling):
    weak, strong = (row_of(scaling, kind, MOST) for kind in ("weak", "strong"))
    alone, half = (row_of(scaling, kind, 1)["step"] for kind in ("strong", "weak"))
    text = " ".join((NOTEBOOKS / "09_distributed.py").read_text().replace("\n# ", " ").split())
    for said in (
        f"With weak scaling, the efficiency on four GPUs is {ideal_step(weak, scaling['rows']) / weak['step']:.1%}.",
        f"With strong scaling, it is {ideal_step(strong, scaling['rows']) / strong['step']:.1%},",
        f"four GPUs are {alone / strong['step']:.2f} times as fast as one",
        f"in {strong['not_hidden'] / strong['step']:.1%} of the step, the GPU exchanges gradients",
        f"a GPU takes {alone / 1e3:.1f} ms for 256 samples, {half / 1e3:.1f} ms for 128, and "
        f"{strong['step'] / 1e3:.1f} ms for 64",
        f"the exchange takes {weak['communication'] / 1e3:.2f} ms with weak scaling",
        f"{strong['communication'] / 1e3:.2f} ms with strong scaling",
    ):
        assert said in text, said


@pytest.mark.syllabus("9.2a", "9.2d")
def test_two_gpus_have_the_sum_of_their_gradients_and_four_round_it_otherwise(scaling):
    two, four = scaling["gradients"]
    assert (two["processes"], two["equal"], four["processes"], four["equal"]) == (2, True, MOST, False)
    assert f"{two['difference']:.0e} {four['difference']:.0e}" == "6e-16 6e-16"


@pytest.mark.syllabus("9.2d")
def test_a_smaller_batch_costs_more_than_communication(scaling):
    strong, half = row_of(scaling, "strong", 2), row_of(scaling, "weak", 1)
    assert half["batch"] == strong["batch"] / 2
    assert half["step"] - ideal_step(strong, scaling["rows"]) > strong["not_hidden"]


@pytest.mark.syllabus("9.2d")
def test_only_the_products_take_half_the_time_for_half_the_batch(scaling):
    def times(name: str) -> tuple[float, float]:
        """Of the recurrence, forward and backward of four layers, and of the other large kernels, the products."""
        taken = sorted((end - start for start, end in select(scaling["traces"][name], "compute")), reverse=True)
        assert taken[7] > 1.5 * taken[8]
        return sum(taken[:8]), sum(time for time in taken[8:] if time > 100)  # microseconds

    (whole, products), (half, fewer) = times("weak 1"), times("strong 4")
    assert fewer == pytest.approx(products / 2, rel=0.03)
    assert half > 0.55 * whole


@pytest.mark.syllabus("9.2d")
@pytest.mark.parametrize("name", ["weak 2", "weak 4"])
def test_the_first_exchange_is_hidden_and_the_last_one_is_not(scaling, name):
    exchanges, computing = (select(scaling["traces"][name], kind) for kind in ("communication", "compute"))
    assert len(exchanges) == 2
    assert hidden_share(exchanges[0], computing) > 0.85
    assert hidden_share(exchanges[1], computing) < 0.1


def hidden_share(exchange: list, computing: list) -> float:
    start, end = exchange
    return sum(max(0, min(end, b) - max(start, a)) for a, b in computing) / (end - start)


@pytest.mark.syllabus("9.2d")
@pytest.mark.parametrize("name", ["strong 2", "strong 4"])
def test_a_persistent_kernel_waits_for_the_end_of_an_exchange(scaling, name):
    (exchange, _), computing = (select(scaling["traces"][name], kind) for kind in ("communication", "compute"))
    assert hidden_share(exchange, computing) < 0.1
    start, end = next(each for each in computing if each[1] > exchange[1])
    assert start == pytest.approx(exchange[1], abs=2)
    assert end - start in sorted(b - a for a, b in computing)[-8:]  # a recurrence: forward and backward, four layers
