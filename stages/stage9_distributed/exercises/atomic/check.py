from itertools import product
from pathlib import Path

from common.exercises.judge import require, unchanged

MOST = 20  # operations


def check(work):
    for file in ("disk.py", "trial.py"):
        unchanged(work, file, "Edit only checkpoint.py")
    trial = work.load("trial").trial
    old, new = f"weights of step {work.seed % 1000}", f"weights of step {work.seed % 1000 + 100}, and the optimizer"
    *_, operations = trial({}, new, MOST, 1.0, True)
    written = [name for operation in operations for name in operation.split()[1:] if name != "checkpoint"]
    left = dict.fromkeys(written, "left by a killed run")
    left_by_first_write = dict.fromkeys(written[:1], "left by a killed run")
    saved = work.beside(Path(__file__).with_name("saved.py")).files_after(old)
    for files in ({"checkpoint": old}, {}, {"checkpoint": old} | left, left_by_first_write, saved):
        before = old if files is saved else files.get("checkpoint")
        for fails_at, kept, names_survive in product(range(MOST), (0.0, 0.5, 1.0), (True, False)):
            found, returned, operations = trial(files, new, fails_at, kept, names_survive)
            judge(found, returned, operations, before, new)
        require(returned, f"save does more than {MOST} operations on the disk")


def judge(found, returned, operations, before, new):
    """Raises `Failure` unless the old or the new checkpoint is there as a whole."""
    after = f"after {', '.join(operations)}" if operations else "before the first operation"
    if returned:
        require(
            found == new,
            f"save has returned, and then the power fails: load finds {found!r}, expected the new one ({after}). "
            "What is not on the disk yet, the file's text or its name?",
        )
        return
    require(
        found is not None or before is None,
        f"the power fails {after}: there is no checkpoint any more, neither the old one nor the new one",
    )
    require(
        found in (before, new),
        f"the power fails {after}: load finds {found!r}, which is neither the old checkpoint nor the new one",
    )
