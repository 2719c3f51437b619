"""The checks of what torch does with a stage's sequences: opcheck, torch.compile, autocast, CUDA graphs, memory."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.library import opcheck as check_operator

from ..cell.call import difference, outputs
from ..cell.memory import saved_storages
from ..sequence.case import SequenceCase
from ..sequence.cells import CELLS
from ..sequence.rungs import RUNGS
from .checks import results_of, without_warning
from .rung import Rung
from .subject import needs

SAVED = {"lltm": 4, "lstm": 5, "gru": 4}  # numbers for each unit of a step: z, and the cell if there is one


def opcheck(subject: Rung) -> None:
    """torch.library.opcheck: schemas, fake kernels, the registration of the gradient, and AOT dispatch."""
    operators = subject.module.sequence.operators
    for case in (subject.small_case(), subject.small_case(reverse=True, lengths=subject.lengths)):
        cell, (x, weights, bias, h0, cell0) = case.cell, recurrence_arguments(case)
        options = case.length_of_rows(), cell, case.reverse, subject.rung
        check_operator(operators.recurrence.default, (x, weights, bias, h0, cell0, *options, True))
        given = [None if t is None else t.detach() for t in (x, weights, bias, h0, cell0)]
        results, h, last_cell, cells, z = operators.recurrence(*given, *options, True)
        upstream = results, h, last_cell if cell0 is not None else None
        saved = (*given[1:2], *given[3:], options[0], results, cells, z)
        check_operator(operators.recurrence_backward.default, (*upstream, *saved, *options[1:]))


def recurrence_arguments(case: SequenceCase) -> list[Tensor | None]:
    """x, weights_h, bias_h, h0 and cell0 of the recurrence that a case's sequence calls; all require gradients."""
    given = {name: tensor.detach() for name, tensor in case.inputs().items()}
    weight_ih, weight_hh, bias_ih, bias_hh = case.kind.split(given)
    is_separate = case.cell == "gru"  # its reset gate multiplies the recurrent part with its bias
    x = torch.nn.functional.linear(given["inputs"], weight_ih, bias_ih if is_separate else bias_ih + bias_hh)
    found = [x, weight_hh.contiguous(), bias_hh if is_separate else None, given["h0"], given.get("cell0")]
    return [None if tensor is None else tensor.detach().requires_grad_() for tensor in found]


def whole_under_compile(subject: Rung) -> None:
    """torch.compile(fullgraph=True) keeps a sequence whole, with static and with dynamic shapes."""
    torch._dynamo.reset()
    for dynamic in (False, True):
        case = subject.small_case(reverse=dynamic)
        compiled = torch.compile(subject.function(case), fullgraph=True, backend="aot_eager", dynamic=dynamic)
        inputs = case.inputs()
        message = difference(case, results_of(compiled, case, inputs))
        assert message is None, f"under torch.compile, {message}"
    torch._dynamo.reset()


def autocast(subject: Rung) -> None:
    """Under autocast, a sequence computes in its dtype; the gradients have the dtype of their inputs."""
    device = subject.device.partition(":")[0]
    for cell in CELLS:
        case = subject.small_case(cell)
        function = subject.function(case)
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast(device, dtype=dtype):
                got = outputs(function, case)
            wanted = function(*(tensor.detach().to(dtype) for tensor in case.inputs().values()))
            for name, want in zip(case.results, wanted, strict=True):
                assert torch.equal(got[name], want), f"{name} differs from that of arguments in {dtype} ({case})"
            assert {got[f"d_{name}"].dtype for name in case.differentiable} == {subject.dtype}, str(case)


def saved_memory(subject: Rung) -> None:
    """Besides inputs and results, forward saves z and the cells of all steps for backward, and nothing else."""
    for cell, numbers in SAVED.items():
        case = subject.small_case(cell)
        inputs = list(case.inputs().values())
        results, kept = saved_storages(lambda case=case, inputs=inputs: subject.function(case)(*inputs))
        for tensor in (*inputs, *results):
            kept.pop(tensor.untyped_storage().data_ptr(), None)
        saved = sum(storage.nbytes() for storage in kept.values())
        expected = case.T * case.B * numbers * case.S * subject.dtype.itemsize
        assert saved == expected, f"{saved} bytes are saved for backward, expected {expected} ({case})"


def chosen_rung(subject: Rung) -> None:
    """Without a rung, the stage chooses one, explains the choice, and the results are right."""
    for case in (subject.small_case(), subject.case(subject.cell(1), 2, 9, 3, 40)):
        options = {"dtype": case.dtype, "device": case.device}
        choice = subject.module.explain(case.cell, case.T, case.B, case.S, **options)
        assert choice.rung in RUNGS[subject.target], choice
        assert choice.rung in str(choice), choice
        assert choice.reason in str(choice), choice
        assert choice.reason, choice
        message = difference(case, outputs(case.bind(subject.module), case))
        assert message is None, f"with the rung that the stage chooses, {message}"


@needs("streams")
@without_warning("The AccumulateGrad node's stream")  # make_graphed_callables warms up in one, captures in another
def graph_capture(subject: Rung) -> None:
    """Both passes can be captured in a CUDA graph, which computes from the inputs that are there when it runs."""
    case = subject.small_case()
    with torch.cuda.device(subject.device):
        leaves = tuple(t.detach().requires_grad_() for t in case.inputs().values())
        captured = torch.cuda.make_graphed_callables(subject.function(case), leaves)
        for seed in (case.seed + 1, case.seed + 2):
            other = subject.small_case(seed=seed)
            message = difference(other, results_of(captured, other, other.inputs()))
            assert message is None, f"replayed by a CUDA graph, {message}"
