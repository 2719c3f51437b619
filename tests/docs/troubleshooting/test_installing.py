"""Problems while installing: pip, the network, the disk."""

from __future__ import annotations

import pytest

from support.sandbox import (
    ROOT,
    Sandbox,
    assert_printed,
    problem,
    setuptools_wheel,
)


@pytest.mark.needs("g++", "pip")
@pytest.mark.syllabus("2.4d")
def test_pip_cannot_see_torch(sandbox: Sandbox) -> None:
    page = problem("pip cannot see torch")
    sandbox.package("setup_torch.py")
    setuptools_wheel(sandbox.folder / "wheels")
    isolated = "python -m pip install ./stages/stage2_aten"
    assert_printed(page.symptoms[0], sandbox.fails(isolated, PIP_FIND_LINKS="wheels"))
    assert_printed(page.symptoms[1], sandbox.fails(isolated))
    sandbox.install(page.fixes[0])
    sandbox.works('python -c "import torch, lltm_stage2"')


@pytest.mark.needs("pip", "ensurepip")
def test_no_network(sandbox: Sandbox) -> None:
    page = problem("No network")
    offline = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    sandbox.works("python -m venv bare")
    setup = f"cd {ROOT}; {sandbox.folder}/bare/bin/python -m common setup"
    assert_printed(page.symptoms[0], sandbox.fails(setup, **offline, PYTHONPATH=""))
    command = "python -m pip install --target installed --ignore-installed torch"
    assert_printed(page.symptoms[1], sandbox.fails(command, **offline))
    assert page.fixes[0] == "make stage-2 PYTHON=python3\n"


@pytest.mark.needs("g++")
def test_disk_full(sandbox: Sandbox) -> None:
    page = problem("Disk full")
    sandbox.write("main.cpp", "int main() {}\n")
    assert_printed(page.symptoms[0], sandbox.fails("g++ -S main.cpp -o /dev/full"))
    assert_printed(page.symptoms[1], sandbox.fails("g++ main.cpp -o /dev/full"))
    assert_printed(page.symptoms[2], sandbox.fails(sandbox.script("open('/dev/full', 'w', 1).write('x\\n')")))
    where = sandbox.script(
        "import tempfile; from torch.utils.cpp_extension import _get_build_directory\n"
        "print(tempfile.gettempdir(), _get_build_directory('_C', False))"
    )
    roomy = sandbox.folder / "roomy"
    output = sandbox.works(f"{page.fixes[0]}\n{where}\ng++ -v main.cpp")
    assert f"{roomy}/tmp {roomy}/extensions/_C" in output
    assert f"{roomy}/tmp/cc" in output  # the compiler's own temporary files
