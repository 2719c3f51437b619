"""The report: one file that needs no network, with what ran, what did not, and every picture."""

import json
import re
from html.parser import HTMLParser

import pytest

from common.errors import UserError
from common.pages import report
from common.pages.sequence_section import sequence_section
from common.results import records
from common.stages import Stage
from support.counted import counted
from support.measurement import measurement

CHECKED = [
    {"stage": 2, "target": "host", "device": "cpu", "dtype": "float32", "name": "sizes", "outcome": "passed",
     "message": "", "seconds": 1.5},
    {"stage": 2, "target": "host", "device": "cpu", "dtype": "float32", "name": "second device", "outcome": "not run",
     "message": "needs 2 GPUs", "seconds": 0.0},
]  # fmt: skip


class Reader(HTMLParser):
    """Collects the text of a page, its tags in order, and whether they nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.open, self.tags = "", [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + " "


@pytest.fixture
def page() -> str:
    result = measurement() | {
        "not_run": [
            {"name": "torch.compile", "device": "cpu", "what": "B16", "reason": "no <compiler>"},
        ]
    }
    return report.render_page(result, [measurement("h200", gpu="NVIDIA H200")], CHECKED)


def test_the_page_is_whole_and_needs_no_network(page):
    reader = Reader(page)
    assert reader.open == []
    assert "http" not in page
    assert not re.search(r"<(script|link|iframe)|@import|url\(", page)
    images = [attributes for tag, attributes in reader.tags if tag == "img"]
    assert len(images) == 2 * 3 + 2  # for each choice of gradients three, then the machines and the builds
    for image in images:
        assert image["src"].startswith("data:image/png;base64,")
        assert len(image["alt"]) > 40
    assert dict(reader.tags)["html"] == {"lang": "en"}


def test_a_stage_without_a_readme_is_not_here_yet(monkeypatch):
    monkeypatch.setattr(Stage, "is_here", property(lambda stage: stage.number < 9))
    text = Reader("".join(report.coverage_section(measurement(), []))).text
    assert text.count("not here yet") == 1


def test_it_says_what_ran_and_what_did_not(page):
    text = Reader(page).text
    assert "measured on CPU tensors" in text
    assert "no <compiler>" in text
    assert "second device" in text
    assert "needs 2 GPUs" in text
    assert "Abacus 9000, 2 cores, 16.0 GiB of memory" in text
    assert "none that torch can use" in text
    assert "80 (1.25)" in text


def test_it_begins_with_the_answer(page):
    text = Reader(page).text
    answer = (
        "The fastest stage here is stage 2 (C++ with ATen).  Forward and backward of one call on CPU tensors take "
        "320 us at B16 I32 S128, 1.25 times as fast as eager; 3,200 us at B64 I1024 S128, 1.25 times as fast as eager"
    )
    assert answer in text
    assert page.index("<svg") < page.index("<table")


def test_the_contents_lead_to_every_section(page):
    tags = Reader(page).tags
    links = [attributes["href"] for tag, attributes in tags if tag == "a"]
    assert links == [f"#{attributes['id']}" for tag, attributes in tags if tag == "h2"]
    assert len(links) == len(set(links)) > 4
    assert page.index("<nav") < page.index("<h2")


def test_times_come_before_the_counts_of_checks(page):
    assert page.index("CPU tensors: Abacus 9000</h2>") < page.index(">Correctness</h2>")
    assert "of the stages passed before anything was timed" in page
    assert page.index("<details>") > page.index(">Correctness</h2>")


def test_a_failed_check_is_shown_first():
    failed = CHECKED[0] | {"outcome": "failed", "message": "off by one"}
    page = report.render_page(measurement(), [], [*CHECKED, failed])
    assert page.index("1 check failed") < page.index("off by one") < page.index("<nav")


def test_the_recorded_times_of_sequences_are_shown_where_stage_7_ran_on_the_emulator():
    entry = CHECKED[0] | {"stage": 7, "target": "emulator"}
    text = Reader("".join(report.emulator_section([entry], records.read_recorded()))).text
    assert "Whole sequences, recorded on NVIDIA H200" in text
    assert "stage 7" in text
    assert "cuDNN LSTM" in text
    assert "nothing recorded yet" not in text
    assert "Stage 7: nothing recorded yet." in "".join(report.emulator_section([entry], []))


def test_a_dark_page_for_those_who_want_one(page):
    assert "color-scheme: light dark" in page
    assert "prefers-color-scheme: dark" in page


def test_what_did_not_run_is_a_line_for_each_reason():
    missing = [("no GPU", "sixty on CUDA tensors"), ("no compiler", "Triton"), ("no GPU", "sixty on CUDA tensors")]
    (table,) = report.not_run_table([*missing, ("no GPU", "eager")])
    assert table.count("<tr>") == 3
    assert "no GPU" in table
    assert "sixty on CUDA tensors, eager" in table
    assert list(report.not_run_table([])) == []


def test_times_whose_quartiles_lie_far_apart_are_marked(page):
    assert report.FAR not in Reader(page).text
    result = measurement()
    disturbed = next(row for row in result["rows"] if row["name"] == "stage 2")
    disturbed |= {"q1": disturbed["median"], "q3": 1.5 * disturbed["median"]}
    text = Reader(report.render_page(result, [], [])).text
    assert f"80 (1.25) {report.FAR}" in text
    assert text.count(report.FAR) == 2  # and the note below the table
    assert "The quartiles lie far apart" in text


def test_an_old_measurement_is_marked_as_stale():
    text = Reader(report.render_page(measurement() | {"sources": {}}, [], [])).text
    assert "stage 2 (stale: sources changed since)" in text


def test_clocks_are_shown():
    clocks = {"sm": 1755, "memory": 3201, "sm_max": 1980, "memory_max": None}
    result = measurement(gpu="NVIDIA H200")
    result["machine"]["gpu_clocks_mhz"] = clocks
    assert (
        "multiprocessors 1755 of at most 1980 MHz, memory 3201 MHz" in Reader(report.render_page(result, [], [])).text
    )


def test_kernels_that_ran_on_the_emulator_are_shown_line_by_line(tmp_path, monkeypatch):
    asked = []
    made = counted(tmp_path, ["copy<T>"])
    monkeypatch.setattr(report.stage_counts, "count_stage", lambda number: asked.append(number) or made)
    entry = CHECKED[0] | {"stage": 3, "target": "emulator"}
    page = report.render_page(measurement(), [], [*CHECKED, entry, entry | {"dtype": "float64"}])
    assert asked == [3]
    reader = Reader(page)
    assert "Memory requests of the kernels" in reader.text
    assert "Stage 3: copy<T>, (2, 1, 1) blocks" in reader.text
    assert re.search(r"line 12\s+global load\s+4\s+20\s+6\s+3\s+0.3", reader.text)
    captions = [attributes["alt"] for tag, attributes in reader.tags if tag == "img"]
    assert "Stage 3: copy<T> line by line. The numbers are in the tables of this page." in captions
    assert "Memory requests of the kernels" not in report.render_page(measurement(), [], CHECKED)


def test_without_a_measurement_it_says_how_to_make_one(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MEASURED", tmp_path / "bench.json")
    with pytest.raises(UserError, match="`make bench` or `make tour` writes it"):
        report.write_report()


def test_the_command(tmp_path, monkeypatch, capsys):
    result = measurement()
    del result["name"]
    monkeypatch.setattr(records, "MEASURED", tmp_path / "bench.json")
    monkeypatch.setattr(report, "PAGE", tmp_path / "out" / "report.html")
    monkeypatch.setattr(report, "CHECKED", tmp_path / "check.json")
    monkeypatch.setattr(records, "read_recorded", list)
    records.write_result(result, records.MEASURED)
    report.CHECKED.write_text(json.dumps(CHECKED))
    assert report.write_report() == 0
    assert "No other machine is recorded yet" in report.PAGE.read_text()
    assert "opens in any browser" in capsys.readouterr().out


def test_sequences_are_a_table_for_each_configuration():
    facts = {
        "stage": None,
        "cell": "lstm",
        "B": 2,
        "I": 4,
        "S": 8,
        "dtype": "float32",
        "maths": "TF32",
        "device": "cpu",
    }
    facts |= {"saved_bytes": 2048, "peak_bytes": 2**21, "baseline": "torch.nn LSTM"}
    rows = [
        {**facts, "T": T, "name": name, "pass": which, "median": 1e3 * T * ratio, "ratio": ratio}
        for T in (3, 5)
        for which in ("forward", "forward+backward")
        for name, ratio in (("torch.nn LSTM", 1.0), ("eager loop", 2.0))
    ]
    tables = list(sequence_section(measurement() | {"sequences": rows}))[2:]
    assert len(tables) == 2
    assert "LSTM, T3 B2 I4 S8, float32 (TF32), CPU tensors, Abacus 9000" in tables[0]
    assert "<td>10.000 (0.50)</td>" in tables[1]
    assert "<td>2 KiB</td><td>2.0 MiB</td>" in tables[0]
    assert list(sequence_section(measurement())) == []
