"""What is no answer never passes: zeros, constants, NaN, arguments handed back, what was kept from a call before."""

from __future__ import annotations

import textwrap

import pytest

from common.exercises import find, variants, workspace
from common.exercises.judge import SMALL, Failure, agree, cases
from common.exercises.judging.repeats import results_kept
from common.exercises.judging.work import Work
from common.exercises.variants import ANSWERS

# Each is a cell made from the right one, `right(input, weights, bias, old_h, old_cell)`; and what is said of it.
CHEATS = {
    "zeros": ("return torch.zeros_like(old_h), torch.zeros_like(old_cell)", "all zeros: nothing was computed"),
    "a constant": ("return torch.full_like(old_h, 0.3), torch.full_like(old_h, 0.3)", "the same number, 0.3"),
    "nan": ("return old_h * math.nan, old_cell * math.nan", "all NaN"),
    "infinity": ("return old_h + math.inf, old_cell + math.inf", "got inf"),
    "arguments": ("return old_h, old_cell", "this is old_h, an argument, returned unchanged"),
    "not written": ("return torch.empty_like(old_h), torch.empty_like(old_cell)", "all NaN: never written"),
    "exchanged": ("return right(*given)[::-1]", "this should be new_cell"),
    "one of the two": ("return right(*given)[0]", "expected the pair (new_h, new_cell)"),
    "three": ("return (*right(*given), old_h)", "expected the pair (new_h, new_cell)"),
    "numbers": ("return 0.5, 0.5", "new_h is a float (0.5)"),
    "another dtype": ("return tuple(one.half() for one in right(*given))", "has dtype torch.float16"),
    "always float32": ("return tuple(one.float() for one in right(*given))", "has dtype torch.float32"),
    "narrowed": ("return tuple(one.float().to(one.dtype) for one in right(*given))", "computed in float32"),
    "another shape": ("return tuple(one.t() for one in right(*given))", "Is it transposed?"),
    "the first call's result": (
        "kept.append(right(*given)) if not kept else None\n    return kept[0]",
        "has dtype torch.float32, expected torch.float64",
    ),
    "the same buffer again": (
        "key = (old_h.shape, old_h.dtype)\n    new = right(*given)\n"
        "    old, buffers[key] = buffers.get(key), new\n    return old or new",
        "this is the result of the previous call: a buffer that was not overwritten",
    ),
    "results by shape": (
        "key = (old_h.shape, old_h.dtype)\n    return buffers.setdefault(key, right(*given))",
        "d_old_cell is missing: got None, expected a tensor",
    ),
    "no gradients": (
        "return tuple(one.detach() for one in right(*given))",
        "new_h has no gradient: autograd does not know how it was computed",
    ),
    "gradients of one": (
        "new_h, new_cell = right(*given)\n    return new_h, new_cell.detach()",
        "new_cell has no gradient",
    ),
    "arguments changed": ("old_cell.detach().zero_()\n    return right(*given)", "modifies its arguments"),
}
FILE = """
import math
import torch
from .lltm import equations as right
kept, buffers = [], {}
"""


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A learner's folder with all of them in one module, so that they share one process."""
    exercise = find("1/backward_by_hand")
    folder = tmp_path_factory.mktemp("cheats")
    text = FILE
    for number, (body, _) in enumerate(CHEATS.values()):
        text += f"\ndef cheat{number}(*given):\n    input, weights, bias, old_h, old_cell = given\n    {body}\n"
    text += "\ndef honest(*given):\n    return right(*given)\n"
    text += "\ndef copies(*given):\n    results = [one.detach() for one in right(*given)]\n"
    text += "    buffers.setdefault('copies', [one.clone() for one in results])\n"
    text += "    return [old.copy_(new) for old, new in zip(buffers['copies'], results)]\n"
    workspace.write_files({**variants.solution(exercise), "cheats.py": textwrap.dedent(text)}, folder)
    with Work(exercise, folder, "host") as work:
        yield work


def usual(work):
    """The cases of most checks, with a second call of the first size, as every check has one."""
    return [*cases(work, [SMALL]), work.case(*SMALL, seed=work.seed + 999)]


def test_the_right_one_passes(work):
    agree(work.cell("cheats", "honest"), cases(work))


@pytest.mark.parametrize("what", CHEATS)
def test_what_is_no_answer_never_passes(work, what):
    number, words = list(CHEATS).index(what), CHEATS[what][1]
    with pytest.raises(Failure) as failure:
        agree(work.cell("cheats", f"cheat{number}"), usual(work))
    assert words in str(failure.value)


def test_a_later_call_leaves_the_results_of_an_earlier_one(work):
    first, second = ([one.detach() for one in work.case(*SMALL, seed=seed).inputs().values()] for seed in (1, 2))
    results = ("new_h", "new_cell")
    results_kept(work, "cheats.honest", results, first, second)
    with pytest.raises(Failure, match="a second call of copies overwrites new_h, new_cell of the first"):
        results_kept(work, "cheats.copies", results, first, second)
    results += ("d_old_cell",)
    for calls in (first, second):
        calls[-1].requires_grad_()
    results_kept(work, "cheats.honest", results, first, second)


@pytest.mark.parametrize("said", ["nan", "inf", "-1e999", "seven"])
def test_an_answer_is_a_finite_number(tmp_path, said):
    exercise = find("2/which_element")
    work, name = Work(exercise, tmp_path, "host"), exercise.questions[0].name

    def write(answer):
        answers = {question.name: answer for question in exercise.questions}
        (tmp_path / ANSWERS).write_text(variants.format_answers(exercise.questions, answers))

    write("21.0")
    assert work.number(name, whole=False) == 21
    write(said)
    for whole in (True, False):
        with pytest.raises(Failure, match=f"{name} = {said}: write a {'whole ' * whole}number"):
            work.number(name, whole=whole)


def test_two_checks_take_different_numbers(work):
    again = Work(work.exercise, work.folder, work.target)
    assert again.seed != work.seed
    one, other = (cases(each, [SMALL])[0].inputs()["old_h"] for each in (work, again))
    assert not one.equal(other)
    assert not cases(work, [SMALL])[0].inputs()["old_h"].equal(cases(work, [SMALL])[2].inputs()["old_h"])
