import torch

from common.exercises.judge import OPERATORS, Failure, LearnerError, require, same, unchanged

FUNCTIONS = {"leaked": ("state",), "leaked_row": ("state",), "accounted": ("kept", "lost")}
WRITTEN = {"leak_": ("cell",), "leak": ("lost",)}


def check(work):
    unchanged(work, "leaky.py", "The check runs the operators with it. Change their schemas, in csrc/leak.cpp")
    leaky, probe = work.load("leaky"), work.beside(OPERATORS)
    cell, share = fresh(work)
    for name, want in reference(cell.double(), share.double()).items():
        compare(f"{name}(cell, share)", FUNCTIONS[name], getattr(leaky, name)(cell, share), want)
        try:
            got = probe.compiled("leaky", name, False, cell, share)
        except LearnerError as error:
            raise Failure(f"{name} does not compile: {str(error).strip().splitlines()[0]}") from None
        compare(f"compiled {name}(cell, share)", FUNCTIONS[name], got, want)
    for name in WRITTEN:
        others = (torch.zeros_like(cell),) if name == "leak" else ()
        said = probe.opcheck(f"leak::{name}", "test_schema", cell.clone(), share, *others)
        require(not said, f"opcheck of {name}: {said}")
        marks(name, probe.schema(f"leak::{name}"))


def fresh(work):
    """cell (B, S) and share (S)."""
    numbers = work.numbers()
    return torch.randn(3, 70, generator=numbers), torch.rand(70, generator=numbers)


def reference(cell, share):
    """What each function should return."""
    first_row = torch.cat([cell[:1] * 2 * share, cell[1:] * 2])
    kept = cell * share * share
    return {"leaked": (kept,), "leaked_row": (first_row,), "accounted": (kept, cell - kept)}


def compare(what, names, got, want):
    """Raises `Failure` for the first result that is wrong."""
    got = got if isinstance(got, tuple | list) else (got,)
    for name, one, right in zip(names, got, want, strict=True):
        try:
            same(name, one, right, what, torch.float32)
        except Failure as failure:
            if not what.startswith("compiled"):
                raise
            raise Failure(
                f"{failure}\nNo error was raised, and the result in eager mode was right: the compiler relies on the "
                "schema to know what an operator writes to"
            ) from None


def marks(name, schema):
    """Only arguments that the operator writes to are marked as written."""
    arguments = schema.partition("(")[2].partition(" ->")[0].removesuffix(")").split(", ")
    for argument in arguments:
        kind, _, called = argument.partition(" ")
        require(
            "!" not in kind or called in WRITTEN[name],
            f"{name} declares that it writes to {called}, but it never does: a compiler would copy {called} wherever "
            "its old value is needed",
        )
