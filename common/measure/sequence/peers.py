"""What a sequence is compared with: loops in Python, compiled or under a CUDA graph, and torch's own LSTM and GRU."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

import torch
from torch import Tensor

from ...build.modules import load_stage
from ...cell.call import LOW_PRECISION, Function
from ...results.rows import CUDA_GRAPH
from ...sequence.case import SequenceCase
from ..cuda_graphs import CapturedFunction
from ..implementations import Implementation, InputSet

# More steps than these are left out of a run: a loop of this length is slow enough to show what a step costs, and
# torch.compile unrolls the loop, which takes it half a second for each step.
LONGEST_LOOP, LONGEST_COMPILED = 256, 32
# FlashRNN has one kernel for a whole sequence, of the LSTM only, and two kernels for each step.
FLASHRNN_BACKENDS = {
    "lstm": {"FlashRNN, fused": "cuda_fused", "FlashRNN, alternating": "cuda"},
    "gru": {"FlashRNN, alternating": "cuda"},
}


def stage_rungs(
    case: SequenceCase, module: ModuleType, target: str, rungs: Sequence[str | None]
) -> list[Implementation]:
    """Stage 7 on each of these rungs; None is the one that it chooses itself. A rung may be too small for a state."""
    return [
        Implementation(
            f"stage 7, {rung}" if rung else "stage 7",
            case.bind(module, rung),
            7,
            target,
            compiled=rung == "graph",
            may_fail=rung is not None,
        )
        for rung in rungs
    ]


def find_peers(case: SequenceCase) -> tuple[list[Implementation], list[tuple[str, str]]]:
    """The peers of a case, the baseline first; and which are left out, with the reason."""
    peers, left_out = [], []
    if case.cell != "lltm":
        name = f"{'cuDNN' if case.device == 'cuda' else 'torch.nn'} {case.cell.upper()}"
        peers.append(Implementation(name, by_torch(case), may_fail=case.dtype != torch.float32))
    if case.device == "cuda" and case.cell != "lltm" and case.dtype in LOW_PRECISION:
        if importlib.util.find_spec("flashrnn"):
            for name, backend in FLASHRNN_BACKENDS[case.cell].items():
                peers.append(Implementation(name, by_flashrnn(case, backend), compiled=True, may_fail=True))
        else:
            left_out.append(("FlashRNN", "not installed: pip install flashrnn"))
    for name, function, is_compiled, longest in loops(case):
        if longest < case.T:
            left_out.append((name, f"left out of runs of more than {longest} steps"))
        else:
            peers.append(Implementation(name, function, compiled=is_compiled, may_fail=True))
    return peers, left_out


def loops(case: SequenceCase) -> Iterator[tuple[str, Function, bool, int]]:
    """Name, function, whether its first call compiles or captures it, and the most steps that it is run with."""
    eager: Function = case.equations
    if case.cell == "lltm":
        eager = loop_over_cell(case, load_stage(1).equations)
    yield "eager loop", eager, False, LONGEST_LOOP
    if case.cell == "lltm":
        target = "cuda" if case.device == "cuda" else "host"
        yield "loop over stage 6", loop_over_cell(case, load_stage(6, target).lltm), False, LONGEST_LOOP
    yield "torch.compile of the loop", torch.compile(eager, dynamic=False), True, LONGEST_COMPILED
    if case.device == "cuda":
        parameters = [k for k, name in enumerate(case.differentiable) if name in case.kind.parameters]
        yield CUDA_GRAPH + "the loop", CapturedFunction(eager, parameters), True, LONGEST_LOOP


def loop_over_cell(case: SequenceCase, cell: Callable[..., tuple[Tensor, Tensor]]) -> Function:
    """A loop in Python over a cell of an earlier stage."""
    times = range(case.T)[:: -1 if case.reverse else 1]

    def function(inputs: Tensor, weights: Tensor, bias: Tensor, h: Tensor, state: Tensor) -> tuple[Tensor, ...]:
        outputs: list[Tensor] = [h] * case.T
        for t in times:
            h, state = cell(inputs[t], weights, bias, h, state)
            outputs[t] = h
        return torch.stack(outputs), h, state

    return function


def by_torch(case: SequenceCase) -> Function:
    """Torch's own LSTM or GRU: cuDNN's on a GPU, oneDNN's or ATen's on a CPU."""
    options = (
        case.has_bias,
        1,
        0.0,
        True,
        False,
        False,
    )  # one layer, no dropout, training, one direction, steps first

    def lstm(inputs: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        *parameters, h0, cell0 = others
        outputs, h, cell = torch.lstm(inputs, (h0[None], cell0[None]), parameters, *options)
        return outputs, h[0], cell[0]

    def gru(inputs: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        *parameters, h0 = others
        outputs, h = torch.gru(inputs, h0[None], parameters, *options)
        return outputs, h[0]

    return lstm if case.cell == "lstm" else gru


def by_flashrnn(case: SequenceCase, backend: str) -> Function:
    """FlashRNN's LSTM or GRU, from its package. The products of the inputs are torch's, as its interface asks.

    The first call compiles the kernels for this size. The LSTM's gates are in torch's order; the GRU has the
    candidate's recurrent part first, and a bias for each part.
    """
    from flashrnn import FlashRNNConfig, flashrnn

    importlib.import_module("flashrnn.flashrnn.flashrnn").get_gpu_info = gpu_info_for_flashrnn
    dtype = str(case.dtype).removeprefix("torch.")
    kinds = {"dtype": dtype} | {f"dtype_{part}": dtype for part in "brw"}
    layout = {"input_shape": "TBGHD", "output_shape": "STBHD"}
    sizes = {"head_dim": case.S, "num_heads": 1, "batch_size": case.B}
    config = FlashRNNConfig(function=case.cell, backend=backend, **sizes, **kinds, **layout)

    def function(inputs: Tensor, w_input: Tensor, w_h: Tensor, b_input: Tensor, b_h: Tensor, *start: Tensor):
        gates = (inputs @ w_input.t()).unflatten(2, (-1, 1, case.S))  # (T, B, G, 1, S)
        recurrent, own, of_h = (tensor.unflatten(0, (-1, 1, case.S)) for tensor in (w_h, b_input, b_h))
        bias = own + of_h
        if case.cell == "gru":  # torch: reset, update, candidate
            recurrent = recurrent.roll(1, 0)
            bias = torch.cat([of_h[2:], bias[:2], own[2:]])
        states, last = flashrnn(
            gates, recurrent, bias, torch.stack(start)[:, None, :, None], function=case.cell, config=config
        )
        return states[0, :, :, 0], *last[:, 0, :, 0]

    return function


def gpu_info_for_flashrnn(device_id: int) -> dict[str, int]:
    """The properties of a GPU that FlashRNN asks for. Its own function does not compile with CUDA 13."""
    of = torch.cuda.get_device_properties(device_id)
    return {
        "maxThreadsPerBlock": of.max_threads_per_block,
        "regsPerMultiprocessor": of.regs_per_multiprocessor,
        "multiProcessorCount": of.multi_processor_count,
        "sharedMemPerBlockOptin": of.shared_memory_per_block_optin,
    }


def flatten_for_cudnn(sets: Sequence[InputSet]) -> None:
    """Moves the parameters of each set into one buffer, as `torch.nn.LSTM` does: cuDNN would copy them at every call.

    They stay contiguous tensors with the same numbers, for all other implementations, too.
    """
    for given in sets:
        case = given.case
        if case.cell == "lltm" or case.device != "cuda" or not case.has_bias:
            continue
        mode = {"lstm": 2, "gru": 3}[case.cell]  # cuDNN's numbers
        parameters = given.arguments[1:5]
        with torch.no_grad():
            torch._cudnn_rnn_flatten_weight(parameters, 4, case.I, mode, case.S, 0, 1, False, False)


@contextmanager
def float32_maths(maths: str) -> Iterator[None]:
    """Computes products of float32 in IEEE arithmetic or in TF32, in cuBLAS and in cuDNN."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = maths == "TF32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
