"""The harness for sequences: each mistake that it exists for is planted in a stage's functions and must be caught."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.autograd.function import once_differentiable

from common import load
from common.check.sequence import SequenceSubject
from common.check.subject import check_subject
from common.sequence.cells import CELLS
from common.sequence.reference import loop
from common.sequence.rungs import rungs_of

pytestmark = pytest.mark.needs("g++")
NAMES = [f"{cell}_sequence" for cell in CELLS]


def right(name: str):
    return getattr(load(7, "host"), name)


class Changed:
    """The stage's functions, of which `change(function, *arguments, **options)` replaces some."""

    def __init__(self, change, names: tuple[str, ...]):
        self.change, self.names = change, names

    def __getattr__(self, name: str):  # the stage is built when a test asks for a function, not at collection
        if name not in self.names:
            return right(name)
        return lambda *arguments, **options: self.change(right(name), *arguments, **options)


def changed(change, *names: str) -> Changed:
    """The stage's functions with a change of the named ones, by default of all."""
    return Changed(change, names or tuple(NAMES))


def on_outputs(change):
    """Changes the outputs (T, B, S) of every sequence."""

    def call(function, *arguments, **options):
        outputs, state = function(*arguments, **options)
        return change(outputs), state

    return changed(call)


def on_options(**replaced):
    """Ignores what the caller asks for."""
    return changed(lambda function, *arguments, **options: function(*arguments, **{**options, **replaced}))


def on_arguments(change):
    """Changes arguments that are checked before."""

    def call(function, *arguments, **options):
        function(*arguments, **options)
        return function(*change(arguments), **options)

    return changed(call)


def first_rows_only(outputs):
    return outputs * (torch.arange(outputs.size(1)) < 8)[:, None].to(outputs.dtype)


def first_units_only(outputs):
    return outputs * (torch.arange(outputs.size(2)) < 32).to(outputs.dtype)


def one_step_late(outputs):
    return outputs.roll(1, 0)


def wrong_parity(outputs):
    """Every second step shows the state before it."""
    return torch.cat([outputs[k - k % 2 : k - k % 2 + 1] for k in range(len(outputs))]) if len(outputs) else outputs


def detached_h(function, *arguments, **options):
    outputs, state = function(*arguments, **options)
    return (outputs, tuple(t.detach() for t in state)) if isinstance(state, tuple) else (outputs, state.detach())


def fails_without_steps(function, inputs, *arguments, **options):
    if not inputs.numel():
        raise RuntimeError("invalid configuration argument")
    return function(inputs, *arguments, **options)


def bias_outside_of_the_reset_gate(function, inputs, weight_ih, weight_hh, bias_ih, bias_hh, h0, **options):
    function(inputs, weight_ih, weight_hh, bias_ih, bias_hh, h0, **options)
    if bias_hh is None:
        return function(inputs, weight_ih, weight_hh, bias_ih, None, h0, **options)
    return function(inputs, weight_ih, weight_hh, bias_ih + bias_hh, 0 * bias_hh, h0, **options)


def needs_biases(function, inputs, weight_ih, weight_hh, bias_ih, bias_hh, *state, **options):
    assert bias_ih is not None
    return function(inputs, weight_ih, weight_hh, bias_ih, bias_hh, *state, **options)


def gates_in_another_order(function, inputs, weight_ih, weight_hh, bias_ih, bias_hh, *state, **options):
    function(inputs, weight_ih, weight_hh, bias_ih, bias_hh, *state, **options)
    i, f, g, o = weight_ih.chunk(4)
    return function(inputs, torch.cat([i, f, o, g]), weight_hh, bias_ih, bias_hh, *state, **options)


def state_of_the_last_step(function, *arguments, lengths=None, **options):
    """The state after all steps, also of rows that are shorter."""
    outputs, _ = function(*arguments, lengths=lengths, **options)
    return outputs, function(*arguments, **options)[1]


def narrowed_to_half(arguments):
    return [None if t is None else t.half().to(t.dtype) for t in arguments]


def narrowed_to_float(arguments):
    return [None if t is None else t.float().to(t.dtype) for t in arguments]


def noisy(outputs):
    return outputs + outputs * torch.finfo(outputs.dtype).eps * torch.randint(0, 2, outputs.shape)


def changes_its_argument(function, inputs, *arguments, **options):
    result = function(inputs, *arguments, **options)
    inputs.data.add_(1)
    return result


def stale_output():
    last = {}

    def call(function, *arguments, **options):
        outputs, state = function(*arguments, **options)
        before = last.get(outputs.shape, torch.zeros_like(outputs))
        last[outputs.shape] = outputs.detach().clone()
        return before + 0 * outputs, state

    return changed(call)


def refuses_nothing(change=lambda outputs: outputs):
    """The plain loop, which stretches what is too short. `change` changes the outputs."""

    def of(cell):
        def call(*arguments, lengths=None, reverse=False, rung=None):
            given = {n: t for n, t in zip(cell.arguments, arguments, strict=True) if t is not None}
            outputs, *state = loop(cell, given, lengths, reverse).results
            return change(outputs), tuple(state) if len(state) > 1 else state[0]

        return call

    return SimpleNamespace(**{f"{name}_sequence": of(cell) for name, cell in CELLS.items()})


class Keeps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, outputs):
        ctx.save_for_backward(outputs * 2)
        return outputs.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad


def keeps_more(function, *arguments, **options):
    outputs, state = function(*arguments, **options)
    return Keeps.apply(outputs), state


class Silent(torch.autograd.Function):
    """The outputs, with a derivative that is right the first time and zero the second."""

    @staticmethod
    def forward(ctx, outputs):
        return outputs.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad.detach() + 0 * grad


class Squares(torch.autograd.Function):
    """The square of the outputs. torch's refusal leads to none of the arguments."""

    @staticmethod
    def forward(ctx, outputs):
        ctx.save_for_backward(outputs)
        return outputs.square()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0]


class LosesTangents(torch.autograd.Function):
    """The outputs, whose derivative in forward mode is zero."""

    @staticmethod
    def forward(outputs):
        return outputs.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad

    @staticmethod
    def jvp(ctx, tangent):
        return torch.zeros_like(tangent)


class ExpectsGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, outputs, h):
        ctx.set_materialize_grads(False)
        return outputs.clone(), h.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_outputs, grad_h):
        return grad_outputs * 1, grad_h * 1


def expects_all_gradients(function, *arguments, **options):
    outputs, state = function(*arguments, **options)
    h, *others = state if isinstance(state, tuple) else (state,)
    outputs, h = ExpectsGradient.apply(outputs, h)
    return outputs, (h, *others) if others else h


MISTAKES = {
    "cells": [changed(gates_in_another_order, "lstm_sequence"), on_outputs(one_step_late), on_outputs(wrong_parity),
              changed(bias_outside_of_the_reset_gate, "gru_sequence")],
    "sizes": [on_outputs(first_rows_only), on_outputs(first_units_only), changed(fails_without_steps)],
    "layouts of inputs and gradients": [changed(changes_its_argument), stale_output()],
    "gradients for some outputs": [changed(detached_h), changed(expects_all_gradients, "lstm_sequence")],
    "gradients of some inputs": [stale_output()],
    "variable lengths": [on_options(lengths=None), changed(state_of_the_last_step)],
    "from the last step to the first": [on_options(reverse=False)],
    "without biases": [changed(needs_biases, "lstm_sequence", "gru_sequence")],
    "saturated gates": [on_outputs(one_step_late)],
    "not finite": [on_outputs(torch.nan_to_num)],
    "refusals": [refuses_nothing()],
    "same bits": [on_outputs(noisy)],
    "saved memory": [changed(keeps_more)],
    "chosen rung": [on_options(rung="ladder")],
    "gradcheck": [on_arguments(narrowed_to_float)],
    "second derivatives": [refuses_nothing(Silent.apply), refuses_nothing(Squares.apply)],
    "transforms": [refuses_nothing(LosesTangents.apply)],
}  # fmt: skip
RUNNING = [pytest.param(n, module, id=f"{n}-{k}") for n, group in MISTAKES.items() for k, module in enumerate(group)]


def subject_of(module) -> SequenceSubject:
    return SequenceSubject(7, "host", "cpu", torch.float64, module, "cpu", 1)


def outcomes(module, name: str | None = None):
    """The rows of all checks, or of one."""
    subject = subject_of(module)
    rows = check_subject(subject if name is None else only(subject, name))
    return {row.name: row for row in rows}


class Only(SequenceSubject):
    """A subject with one of its checks."""

    name: str

    def cases(self):
        return {name: group for name, group in super().cases().items() if name == self.name}

    def checks(self):
        return [check for check in super().checks() if check.__name__.replace("_", " ") == self.name]


def only(subject: SequenceSubject, name: str) -> Only:
    made = Only(**{field: getattr(subject, field) for field in subject.__dataclass_fields__})
    object.__setattr__(made, "name", name)
    return made


def test_the_stage_passes():
    rows = outcomes(load(7, "host"))
    assert {row.outcome for row in rows.values()} == {"passed"}, rows


@pytest.mark.parametrize(("name", "module"), RUNNING)
def test_a_mistake_is_caught(name, module):
    row = outcomes(module, name)[name]
    assert row.outcome == "failed", row
    assert row.message


def test_every_check_catches_something():
    subject = subject_of(load(7, "host"))
    checks = {check.__name__.replace("_", " ") for check in subject.checks() if not hasattr(check, "needs")}
    assert {*subject.cases(), *checks} == set(MISTAKES)


def test_the_rungs_meet_every_cell_at_every_size():
    """No rung runs each cell at each size, but the dtypes of a rung do it together."""
    for target in ("host", "emulator"):
        for rung in rungs_of(target, "cpu"):
            seen = set()
            for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
                one = SequenceSubject(7, target, "cpu", dtype, load(7, "host"), rung, 1)
                seen.update((case.cell, case.T, case.B, case.I, case.S) for case in one.cases()["sizes"])
            assert len(seen) == len(CELLS) * len(one.cases()["sizes"])
