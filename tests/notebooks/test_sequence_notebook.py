"""What notebook 07 says of barriers, gradients, cuDNN, the recorded sweep, and GPUs with less shared memory."""

from __future__ import annotations

import statistics

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from common import load
from common.studies.sequence import STUDY
from common.studies.sequence.sweep_chart import by_size, rows_of, speedup_over_cudnn
from support.labs import definitions, texts
from support.proofs.files import notebook_files, stage_files

pytestmark = [
    pytest.mark.proof(
        "claims of notebooks",
        files=[
            *notebook_files("07_sequence"),
            *stage_files(),
            "docs/results/studies/sequence_sweep.json",
            "common/studies/sequence/*.cu",
        ],
    ),
    pytest.mark.needs("g++"),
]


class Operators(TorchDispatchMode):
    """Records the names of the operators that are called, with the shape of their first argument."""

    def __init__(self):
        super().__init__()
        self.called = []

    def __torch_dispatch__(self, operator, types, arguments=(), keywords=None):
        first = arguments[0] if arguments else None
        self.called.append((operator.name().partition("::")[2], tuple(getattr(first, "shape", ()))))
        return operator(*arguments, **(keywords or {}))


@pytest.mark.syllabus("7.1a", "7.1b")
@pytest.mark.parametrize("T", [1, 9])
def test_one_product_has_the_inputs_of_all_steps(T):
    B, I, S = 3, 5, 7
    weights, bias, state = torch.randn(3 * S, S + I), torch.randn(3 * S), torch.zeros(B, S)
    with torch.no_grad(), Operators() as operators:
        load(7, "host").lltm_sequence(torch.randn(T, B, I), weights, bias, state, state)
    products = [shape for name, shape in operators.called if name == "product" or "mm" in name]
    assert products == [(T * B, I)], operators.called
    assert [name for name, _ in operators.called].count("recurrence") == 1, "the steps are a loop inside it"


# Captures the launches of some steps, then launches the graph once.
GRAPH = r"""
#include <cuda_runtime.h>

#include <cstdio>

__global__ void step_kernel(int* h, int step) {
  if (h[threadIdx.x] == step) ++h[threadIdx.x];  // counts only if all steps before have run
}

int main() {
  int *h, result[32];
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t steps;
  cudaMalloc(&h, sizeof result);
  cudaMemset(h, 0, sizeof result);
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int step = 0; step < 7; ++step) step_kernel<<<1, 32, 0, stream>>>(h, step);
  cudaStreamEndCapture(stream, &graph);
  cudaMemcpy(result, h, sizeof result, cudaMemcpyDeviceToHost);
  printf("captured: step %d\n", result[0]);
  cudaGraphInstantiate(&steps, graph, 0);
  cudaGraphLaunch(steps, stream);
  cudaStreamSynchronize(stream);
  cudaMemcpy(result, h, sizeof result, cudaMemcpyDeviceToHost);
  printf("one launch of the graph: step %d\n", result[31]);
  cudaGraphExecDestroy(steps);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaFree(h);
}
"""


@pytest.mark.syllabus("7.1c")
def test_a_graph_replays_the_launches_of_all_steps_at_once():
    report = definitions("07_sequence").emulate(GRAPH)
    assert "captured: step 0\n" in report, report
    assert "one launch of the graph: step 7\n" in report
    assert "no problem found" in report


@pytest.mark.syllabus("7.1c")
def test_with_a_graph_every_recorded_forward_pass_is_shorter_than_with_a_loop():
    groups = by_size(rows_of(STUDY.read_record("sweep")))
    forward = [{row["name"]: row["median"] for row in group} for group in groups if group[0]["pass"] == "forward"]
    assert len(forward) >= 60
    assert all(times["stage 7, graph"] < times["stage 7, loop"] for times in forward)


@pytest.mark.syllabus("7.1c")
@pytest.mark.needs("gpu", "nvcc")
def test_the_rung_graph_launches_one_graph():
    """As many kernels as the loop, started by one call; copies of the arguments and results are beside them."""
    T, B, S = 11, 3, 24
    stage = load(7, "cuda")
    x, state = torch.randn(T, B, S, device="cuda"), torch.zeros(B, S, device="cuda")
    weights, bias = torch.randn(3 * S, 2 * S, device="cuda"), torch.randn(3 * S, device="cuda")

    def calls(rung):
        """The calls of CUDA's runtime that one call of the stage makes, after a first one that prepares it."""
        with torch.no_grad():
            stage.lltm_sequence(x, weights, bias, state, state, rung=rung)
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True) as profiler:
                stage.lltm_sequence(x, weights, bias, state, state, rung=rung)
                torch.cuda.synchronize()
        return [event.name for event in profiler.events() if event.name.startswith("cuda")]

    assert sum("LaunchKernel" in name for name in calls("loop")) >= 2 * T
    assert calls("graph").count("cudaGraphLaunch") == 1
    assert sum("LaunchKernel" in name for name in calls("graph")) < T


@pytest.mark.syllabus("7.1d")
@pytest.mark.parametrize("macro", [None, "NO_BARRIER", "WRONG_PARITY"])
def test_the_emulator_reports_steps_that_are_not_kept_apart(macro):
    macros = [macro] if macro else []
    report = definitions("07_sequence").emulate(texts("07_sequence")["PROGRAM"], *macros)
    if macro:
        assert "race on element" in report, report
        assert "of h" in report
    else:
        assert "h[0] after 3 steps: 3" in report
        assert "no problem found" in report


@pytest.mark.syllabus("7.2d")
def test_the_gradient_of_the_recurrent_weights_is_one_product():
    torch.manual_seed(0)
    T, B, S = 6, 3, 5
    weight_hh = torch.randn(4 * S, S, dtype=torch.float64, requires_grad=True)
    x = torch.randn(T, B, 4 * S, dtype=torch.float64, requires_grad=True)
    start, identity = torch.zeros(B, S, dtype=torch.float64), torch.eye(4 * S, dtype=torch.float64)
    outputs, _ = load(7, "host").lstm_sequence(x, identity, weight_hh, None, None, start, start)
    d_z, d_weights = torch.autograd.grad(outputs, [x, weight_hh], torch.randn_like(outputs))
    h_before = torch.cat([start[None], outputs[:-1]]).detach()
    torch.testing.assert_close(d_z.flatten(0, 1).T @ h_before.flatten(0, 1), d_weights)


@pytest.mark.syllabus("7.2d")
def test_the_parts_of_all_blocks_add_up_to_the_gradient_of_h():
    """Each block multiplies d_z of its own units by its own rows of the weights."""
    torch.manual_seed(0)
    B, S, blocks = 3, 8, 4
    d_z, weight_hh = torch.randn(B, 4 * S, dtype=torch.float64), torch.randn(4 * S, S, dtype=torch.float64)
    owner = torch.arange(4 * S) % S // (S // blocks)
    parts = [d_z[:, owner == block] @ weight_hh[owner == block] for block in range(blocks)]
    torch.testing.assert_close(sum(parts), d_z @ weight_hh)


@pytest.mark.syllabus("7.2b")
@pytest.mark.parametrize(
    "target", ["host", pytest.param("cuda", marks=pytest.mark.needs("gpu", "nvcc"))], ids=["torch", "cuDNN"]
)
def test_the_modules_equal_torchs(target):
    """On a GPU, torch's modules call cuDNN."""
    stage, compare = load(7, target), definitions("07_sequence").compare_modules
    like = {"dtype": torch.float64, "device": "cuda" if target == "cuda" else "cpu"}
    for official, fast in ((torch.nn.LSTM, stage.FastLSTM), (torch.nn.GRU, stage.FastGRU)):
        if target == "cuda":
            assert torch.backends.cudnn.is_acceptable(torch.zeros(1, **like))
        assert compare(official(7, 24, **like), fast(7, 24, **like)) < 1e-10


def test_the_comparison_of_modules_finds_a_difference():
    class Other(torch.nn.LSTM):
        def forward(self, inputs):
            outputs, state = super().forward(inputs)
            return outputs * 1.001, state

    with pytest.raises(AssertionError):
        definitions("07_sequence").compare_modules(torch.nn.LSTM(7, 24), Other(7, 24))


# The record -------------------------------------------------------------------------------------------------------


def recorded_speedups() -> list[tuple[float, dict, dict[str, float]]]:
    """The speed-up over cuDNN at each size and pass, smallest first, with the size and the times by name."""
    found = []
    for group in by_size(rows_of(STUDY.read_record("sweep"))):
        speedup = speedup_over_cudnn(group)
        assert speedup is not None, f"cuDNN or stage 7 is missing at {group[0]}"
        found.append((speedup, group[0], {row["name"]: row["median"] for row in group}))
    return sorted(found, key=lambda one: one[0])


@pytest.mark.syllabus("7.2b", "7.3a")
def test_the_sweep_compares_with_cudnn_at_every_size():
    sizes = [row for _, row, _ in recorded_speedups()]
    assert len({(row["T"], row["B"], row["S"]) for row in sizes}) >= 60
    assert all(len({row[size] for row in sizes}) >= least for size, least in (("T", 2), ("B", 4), ("S", 5)))


@pytest.mark.syllabus("7.3a")
def test_where_the_notebook_says_that_the_gain_is_smallest_and_largest():
    speedups = recorded_speedups()
    sizes = [row for _, row, _ in speedups]
    batch, state = (max(row[size] for row in sizes) for size in "BS")
    for speedup, row, times in speedups:
        if (row["B"], row["S"]) == (batch, state):
            assert speedup <= speedups[5][0]  # the six smallest: three numbers of steps, two passes
            assert times["stage 7, graph"] < times["stage 7, grid"]
            assert "stage 7, cluster" not in times
    lengths = sorted({row["T"] for row in sizes})
    medians = [statistics.median(speedup for speedup, row, _ in speedups if row["T"] == T) for T in lengths]
    assert medians == sorted(medians)
    assert speedups[-1][1]["T"] == lengths[-1]
    gains = {(row["B"], row["S"], row["pass"], row["T"]): speedup for speedup, row, _ in speedups}
    for B, S, passes in {size[:3] for size in gains}:
        if state > S:  # the weights fit in a cluster
            assert gains[B, S, passes, lengths[0]] < gains[B, S, passes, lengths[-1]]


@pytest.mark.syllabus("7.3b")
def test_the_sweep_of_the_gru_and_of_float32():
    record = STUDY.read_record("sweep")
    slower = set()
    for cell, dtype, maths in (("gru", "bfloat16", "IEEE"), ("lstm", "float32", "TF32"), ("lstm", "float32", "IEEE")):
        groups = by_size(rows_of(record, cell, dtype, maths))
        assert len(groups) == 2 * 20  # both passes of each size
        for group in groups:
            speedup = speedup_over_cudnn(group)
            assert speedup is not None or maths == "IEEE", f"cuDNN is missing at {group[0]}"
            if speedup is not None and speedup < 0.9:
                assert group[0]["S"] == 64 or group[0]["B"] == 128
                slower.add((maths, group[0]["S"], group[0]["pass"]))
    in_forward = {("TF32", 64, "forward"), ("IEEE", 64, "forward"), ("TF32", 1024, "forward")}
    assert slower == in_forward | {("TF32", 1024, "forward+backward")}


# GPUs with less shared memory -------------------------------------------------------------------------------------


def planned(device: str) -> dict[int, str]:
    """The notebook's table for a device: the choices for forward and backward, by state size."""
    table = definitions("07_sequence").plans(texts("07_sequence")[device], 16)
    rows = [line.split(maxsplit=1) for line in table.splitlines()[1:]]
    return {int(state): choices for state, choices in rows}


@pytest.mark.syllabus("7.3c")
def test_the_weights_of_1024_units_stay_on_chip_with_100_kb_too():
    large, small = planned("LARGE"), planned("SMALL")
    assert not any("cluster" in choices for choices in small.values())
    assert "loop" not in "".join(large.values())
    for state in large:
        assert ("loop" in small[state]) == (state > 1024), (state, small[state])
    assert large[768].count("cluster") == small[768].count("grid") == 2
