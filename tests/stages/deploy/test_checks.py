"""The checks of `make stage-8` pass, and fail on planted mistakes; the package is the model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from common import deploy
from common.check import deploy as checks
from support.serving import DEPLOY_MARKS

pytestmark = DEPLOY_MARKS


@pytest.mark.syllabus("8.1a", "8.1c")
@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.what)
def test_a_check_passes_and_says_what_it_saw(check):
    assert len(check.run()) > 5


@pytest.mark.parametrize("check", checks.CHECKS[1:], ids=lambda check: check.what)
def test_a_wrong_score_is_found(check, monkeypatch):
    right = checks.scores_in_python
    monkeypatch.setattr(checks, "scores_in_python", lambda *given: right(*given) + 1e-4)
    with pytest.raises(AssertionError, match="differs from Python's by"):
        check.run()


def test_a_gpus_package_is_compared_with_its_own_weights(monkeypatch):
    package, devices = deploy.build_package(), []
    monkeypatch.setattr(deploy, "build_package", lambda device="cpu": devices.append(device) or package)
    assert checks.check_gpu() == "5 sequences"
    assert set(devices) == {"cuda"}


def test_a_training_that_fails_says_why(tmp_path, monkeypatch):
    failing = [sys.executable, "-c", "raise OSError('no space')"]
    monkeypatch.setattr("common.deploy.package._python", lambda function: failing)
    with pytest.raises(RuntimeError, match=r"not trained and exported:(.|\n)*no space"):
        deploy.package._train_apart(tmp_path, "cpu")


def test_a_program_of_python_is_found(monkeypatch):
    monkeypatch.setattr(deploy, "build_program", lambda: Path(sys.executable))
    with pytest.raises(AssertionError, match="no torch"):
        checks.check_libraries()


def test_a_server_that_is_killed_is_found(monkeypatch):
    def kill(server):
        server.process.kill()
        return server.process.wait()

    monkeypatch.setattr(deploy.Server, "stop", kill)
    with pytest.raises(AssertionError, match="ended with status -9"):
        checks.check_stop()


@pytest.mark.syllabus("8.1b")
@pytest.mark.parametrize(("B", "T"), [(1, 1), (1, 9), (2, 3), (64, 1), (7, 1024)])
def test_the_package_is_the_model_for_any_sizes(B, T):
    deployed = deploy.build_package()
    package = torch._inductor.aoti_load_package(str(deployed.path))
    torch.manual_seed(B + T)
    lengths = torch.randint(0, T + 1, (B,))
    arguments = torch.rand(B, T, 8), lengths, torch.randn(B, 64), torch.randn(B, 64)
    with torch.no_grad():
        want = deployed.model(*arguments)
    for name, one, other in zip(("scores", "h", "cell"), package(*arguments), want, strict=True):
        torch.testing.assert_close(one, other, msg=lambda text, name=name: f"{name}: {text}")


def test_the_model_has_learned_something():
    assert deploy.stage_module("train").measure_accuracy(deploy.build_package().model) > 0.8


@pytest.mark.syllabus("8.1b")
def test_one_tensor_twice_becomes_one_input_without_an_error():
    """Why `first_state` makes two tensors."""
    model, export = deploy.build_package().model, deploy.stage_module("export")
    steps, lengths, h, cell = export.example_inputs(model)
    states = torch.zeros_like(h), torch.ones_like(cell)
    for example, is_right in (((h, cell), True), ((h, h), False)):
        program = torch.export.export(model, (steps, lengths, *example), dynamic_shapes=export.dynamic_shapes())
        with torch.no_grad():
            want, got = model(steps, lengths, *states), program.module()(steps, lengths, *states)
        assert torch.allclose(want[0], got[0]) == is_right
