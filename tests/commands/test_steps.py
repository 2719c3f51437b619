"""The lessons in steps: `make diff-5-6 STEP=bias`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from common import stages
from common.commands import diff, steps
from common.commands.optimisations import OPTIMISATIONS
from common.errors import UserError
from common.paths import ROOT

LONGEST = {6: 200, 7: 220}  # changed lines of one step
pytestmark = pytest.mark.needs("git")


def sides(number: int) -> tuple[stages.Stage, stages.Stage]:
    return stages.get_stage(number - 1), stages.get_stage(number)


def changed(text: str) -> list[str]:
    """The lines that a diff adds and removes."""
    return re.findall(r"^[+-](?!(?:\+\+|--) ).*$", text, re.MULTILINE)


@pytest.mark.parametrize("number", LONGEST)
def test_the_steps_lead_from_one_stage_to_the_next(number):
    old, new = sides(number)
    *_, last = steps.texts_after_each(old, new, steps.read_steps(new))
    assert last == {path.relative_to(new.folder).as_posix(): path.read_text() for path in new.sources}


@pytest.mark.parametrize("number", LONGEST)
def test_each_step_changes_something_that_can_be_read_at_once(number):
    lesson = steps.read_steps(sides(number)[1])
    counts = {step.name: len(changed(diff.step_text(*sides(number), step.name))) for step in lesson}
    assert {name: count for name, count in counts.items() if not 0 < count <= LONGEST[number]} == {}


def test_the_steps_of_stage_6_include_those_that_the_ablation_measures():
    lesson = steps.read_steps(stages.get_stage(6))
    assert {step.optimisation for step in lesson} - {""} == set(OPTIMISATIONS)


def test_an_optimisation_s_step_is_what_the_ablation_leaves_out():
    text = diff.step_text(*sides(6), "bias")
    added = [line for line in changed(text) if line.startswith("+")]
    assert any("sums.sum(0)" in line for line in added)
    assert {line[1:].strip() for line in changed(text) if line.startswith("-")} >= {
        "if (needs_bias) d_bias = d_z.sum(0);"
    }


def test_part_of_a_file_is_what_comes_before_a_line():
    step = steps.Step("first", "", ("a.cpp",), until="new second", old_until="old second")
    assert (
        steps.joined("old first\n// old second\n", "new first\n// new second\n", step) == "new first\n// old second\n"
    )
    assert steps.joined("", "new first\n// new second\n", step) == "new first\n"


@pytest.mark.parametrize("number", LONGEST)
def test_every_until_is_a_line_of_its_file(number):
    """If none contains the text, the step would show the whole file."""
    old, new = sides(number)
    for step in steps.read_steps(new):
        if step.until:
            [name] = step.files
            assert step.until in (new.folder / name).read_text(), step.name
            assert not step.old_until or step.old_until in (old.folder / name).read_text(), step.name


def test_the_whole_diff_begins_with_the_list_of_its_steps(capsys):
    assert diff.show_diff(5, 6) == 0
    shown, _, rest = capsys.readouterr().out.partition("\n\n")
    assert shown.startswith("This diff is long. Read it in steps, in this order: make diff-5-6 STEP=operator")
    assert re.search(r"^  bias +17 lines  The kernel that writes d_z", shown, re.MULTILINE)
    assert rest == diff.diff_text(*sides(6))
    assert max(map(len, shown.splitlines())) <= 120


@pytest.mark.parametrize("number", LONGEST)
def test_the_whole_diff_has_the_order_of_the_steps(number):
    old, new = sides(number)
    shown = re.findall(r"^diff --git .* b/stages/(\w+)/(.*)$", diff.diff_text(old, new), re.MULTILINE)
    changed_now = [name for folder, name in shown if folder == new.folder_name]
    in_steps = dict.fromkeys(name for step in steps.read_steps(new) for name in step.files)
    assert changed_now == [name for name in in_steps if name in changed_now]
    assert {folder for folder, _ in shown[len(changed_now) :]} <= {old.folder_name}  # files that are gone come last


def test_a_short_lesson_has_no_steps(capsys):
    assert diff.show_diff(1, 2) == 0
    assert capsys.readouterr().out.startswith("diff --git")
    with pytest.raises(UserError, match=r"stage 2 has no step 'bias': its lesson has no steps"):
        diff.show_diff(1, 2, "bias")


def test_an_unknown_step_is_answered_with_the_names():
    with pytest.raises(UserError, match=r"stage 6 has no step 'baas': the steps are operator, checks, .*, bias, "):
        diff.show_diff(5, 6, "baas")


def test_steps_lead_from_the_stage_before():
    with pytest.raises(UserError, match="steps lead from a stage to the next one: make diff-5-6 STEP=bias"):
        diff.show_diff(2, 6, "bias")


@pytest.mark.needs("make")
def test_make_passes_the_step_on():
    command = ["make", "--no-print-directory", f"PYTHON={sys.executable}", "diff-5-6", "STEP=joined"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("A GPU computes one product")
    assert "+bool joins(const Tensor& input) { return input.is_cuda(); }" in done.stdout
