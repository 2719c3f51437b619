"""Scripts in processes that have already imported torch behave like scripts in their own processes."""

from __future__ import annotations

import os
import sys

import pytest

from support.suite.warm import run_warm


def run(code: str, *arguments: str, cwd=os.curdir, **settings: str):
    return run_warm(code, *arguments, cwd=cwd, environment={**os.environ, **settings})


def test_it_has_its_own_arguments_folder_environment_and_output(tmp_path):
    code = "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['OWN']); print('wrong', file=sys.stderr)"
    done = run(code, "one", "two", cwd=tmp_path, OWN="set")
    assert done.stdout == f"['one', 'two'] {tmp_path} set\n"
    assert (done.stderr, done.returncode) == ("wrong\n", 0)
    assert "OWN" not in os.environ


def test_what_others_write_counts():
    done = run("import os; print('first', flush=True); os.system('echo second; echo third >&2')")
    assert (done.stdout, done.stderr) == ("first\nsecond\n", "third\n")


def test_torch_is_there_and_nothing_of_this_process(monkeypatch):
    monkeypatch.setitem(sys.modules, "of_this_process", sys)
    done = run("import sys; print('torch' in sys.modules, 'of_this_process' in sys.modules, __name__)")
    assert done.stdout == "True False __main__\n"
    assert (
        run("import torch; print((torch.ones(300, 300) @ torch.ones(300, 300)).sum().item())").stdout
        == "27000000.0\n"
    )


@pytest.mark.parametrize(
    ("code", "status", "says"),
    [
        ("1 / 0", 1, "ZeroDivisionError"),
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('because')", 1, "because"),
        ("raise SystemExit", 0, ""),
        ("import os; os.abort()", -6, ""),
        ("import atexit; atexit.register(print, 'at its end', flush=True)", 0, ""),
    ],
)
def test_it_ends_as_a_script_does(code, status, says):
    done = run(code)
    assert done.returncode == status
    assert says in done.stderr
    assert done.stdout == ("at its end\n" if "atexit" in code else "")
