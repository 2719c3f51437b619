"""The record of stage 8's server, its table and its picture; and the server in Python that it is compared with."""

from __future__ import annotations

import pytest
import torch

from common import deploy, study
from common.check.deploy import scores_in_python
from common.paths import ROOT
from common.results import records
from common.studies.serving import STUDY
from common.studies.serving import chart as serving_chart
from common.studies.serving import recorder as serving
from common.studies.serving.table import serving_table
from support.serving import DEPLOY_MARKS


@pytest.fixture
def record() -> dict:
    return STUDY.read_record()


def test_the_record_has_every_implementation(record):
    calls = [serving.EAGER, serving.COMPILED, serving.PACKAGED]
    servers = [serving.PYTHON_SERVER, serving.PROGRAM, serving.DELAYED]
    wanted = [(name, 1) for name in calls] + [(name, count) for name in servers for count in serving.CLIENTS]
    assert [(row["name"], row["clients"]) for row in record["rows"]] == wanted
    assert all(0 < row["p50_ms"] <= row["p99_ms"] and row["per_second"] > 0 for row in record["rows"])


def test_the_readme_says_what_was_measured(record):
    """Batches without a delay answer most requests; a delay makes each slower."""
    rate = {(row["name"], row["clients"]): row["per_second"] for row in record["rows"]}
    assert rate[serving.PROGRAM, 16] > 2 * rate[serving.PYTHON_SERVER, 16]
    assert rate[serving.DELAYED, 16] < rate[serving.PROGRAM, 16]
    assert rate[serving.PACKAGED, 1] < 1.2 * rate[serving.EAGER, 1]


def test_the_page_says_what_was_measured(record):
    page = (ROOT / "docs" / "when-to-deploy-how.md").read_text()
    assert "a server in Python answers one to three thousand requests per second" in page
    assert "answers several times as many requests per second as a server in Python" in page
    found = {(row["name"], row["clients"]): row for row in record["rows"]}
    for clients in serving.CLIENTS:
        assert 1000 < found[serving.PYTHON_SERVER, clients]["per_second"] < 3000
    assert found[serving.EAGER, 1]["p50_ms"] < 0.1
    assert found[serving.PROGRAM, 16]["per_second"] > 3 * found[serving.PYTHON_SERVER, 16]["per_second"]


def test_the_pages_say_when_a_gpu_pays(record):
    on_gpu = STUDY.read_record("cuda")
    cpu, gpu = ({(row["name"], row["clients"]): row for row in one["rows"]} for one in (record, on_gpu))
    assert gpu[serving.EAGER, 1]["p50_ms"] > cpu[serving.EAGER, 1]["p50_ms"]
    assert gpu[serving.PROGRAM, 16]["per_second"] > max(
        row["per_second"] for row in record["rows"] if row["clients"] == 16
    )
    assert "a call takes longer on an H200 than on a CPU" in (ROOT / "docs" / "when-to-deploy-how.md").read_text()


def test_the_table(record, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "RECORDS", tmp_path)
    assert serving_table() == "Nothing is recorded yet: `make serving`."
    current = record | {"sources": serving.hash_sources()}
    records.save(current, STUDY.record())
    text = serving_table()
    assert "Stale" not in text
    row = next(row for row in record["rows"] if row["name"] == serving.PROGRAM)
    assert f"| lltm_serve | {row['p50_ms']:.2f} | {row['p99_ms']:.2f} | {row['per_second']} |" in text
    records.save(current | {"sources": "others"}, STUDY.record())
    assert serving_table().endswith("Stale: the sources have changed since this was measured.")
    gpu = current | {"device": "cuda", "machine": record["machine"] | {"gpu": "Slide Rule", "cores": 16}}
    records.save(gpu, serving.record_path("cuda"))
    first, second = serving_table().split("\n\nSlide Rule, ")
    assert first.startswith(f"{record['machine']['cpu']}, 2 cores")
    assert second.startswith(f"{record['machine']['cpu']}, 16 cores")


def test_the_picture_shows_the_record(tmp_path):
    drawn = serving_chart.write_chart(tmp_path / "serving.svg")
    assert drawn.read_text() == serving_chart.PICTURE.read_text(), "run python -m common.studies.serving.chart"


@pytest.mark.needs("cmake", "g++", "boost", "openssl", "nlohmann-json")
@DEPLOY_MARKS[1]
def test_both_servers_give_the_scores_of_the_model(monkeypatch):
    monkeypatch.setattr(serving, "SECONDS", 0.2)
    monkeypatch.setattr(serving, "WARM_UP", 0.1)
    sequence, deployed = torch.rand(serving.STEPS, 8), deploy.build_package()
    with serving.python_server() as port, serving.Client(port, sequence) as client:
        torch.testing.assert_close(torch.tensor(client.ask()["scores"]), scores_in_python(sequence))
        row = serving.measure_server("python", port, 2, deployed, sequence)
    assert row["per_second"] > 0
    with deploy.Server(deploy.build_program(), deployed.path) as server:
        assert serving.measure_server("program", server.port, 2, deployed, sequence)["p50_ms"] > 0
