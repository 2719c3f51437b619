"""Generated tables: filled in between their markers, held up to date, and honest about what is worse."""

import pytest

from common import stages
from common.errors import UserError
from common.pages import generate
from common.pages.tables import published_table, sequences_table
from common.paths import ROOT
from common.results import formatting, records, rows
from support.measurement import RATIOS, measurement

README = "# Title\n\n<!-- generated: ladder -->\nold\n<!-- end: ladder -->\n\nEnd.\n"


@pytest.fixture
def recorded(monkeypatch) -> list[dict]:
    """What docs/results/ is taken to hold."""
    found = []
    monkeypatch.setattr(records, "read_recorded", lambda: found)
    return found


@pytest.fixture
def root(tmp_path, monkeypatch, recorded):
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "docs" / "deep" / "page.md").write_text("No table.\n")
    return tmp_path


def written(name: str) -> str:
    page = ROOT / "README.md"
    return generate.find_generator(name, page)(page)


def test_every_generated_table_of_the_workbook_is_up_to_date(capsys):
    assert generate.update_tables(check=True) == 0, capsys.readouterr().out


def test_check_names_the_page_and_the_command_and_changes_nothing(root, capsys):
    assert generate.update_tables(check=True) == 1
    assert "README.md is out of date: python -m common tables" in capsys.readouterr().out
    assert (root / "README.md").read_text() == README


def test_tables_are_written_once(root, recorded, capsys):
    recorded.append(measurement("h200", gpu="NVIDIA H200"))
    assert generate.update_tables() == 0
    assert "README.md rewritten" in capsys.readouterr().out
    text = (root / "README.md").read_text()
    assert text.startswith("# Title\n\n<!-- generated: ladder -->\n\nMicroseconds")
    assert text.endswith("\n\n<!-- end: ladder -->\n\nEnd.\n")
    assert "old" not in text
    assert generate.update_tables(check=True) == 0
    assert "every generated table is up to date" in capsys.readouterr().out
    assert generate.update_tables() == 0
    assert (root / "README.md").read_text() == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- generated: ladder -->\n", "README.md: a generated block is not closed"),
        ("<!-- generated: ladder -->\n<!-- end: stages -->\n", "'generated: ladder' is closed by 'end: stages'"),
        ("<!-- generated: laddr -->\n<!-- end: laddr -->\n", "nothing generates 'laddr'; known are stages, ladder"),
        ("<!-- generated: stage-77 -->\n<!-- end: stage-77 -->\n", "there is no stage 77"),
    ],
)
def test_blocks_that_nothing_can_write(root, text, message):
    (root / "README.md").write_text(text)
    with pytest.raises(UserError, match=message):
        generate.update_tables()


def test_nothing_recorded_yet(recorded):
    for name in ("ladder", "stage-2", "results"):
        assert written(name).startswith("Nothing recorded yet: `make bench`")


def test_the_ladder(recorded):
    recorded.append(measurement("h200", gpu="NVIDIA H200"))
    origin = "**NVIDIA H200**, CUDA tensors, float32 (IEEE), torch 2.15.0, 2026-03-14, gradients for all inputs"
    times = "| stage 2 | 80 (1.25) | 320 (1.25) | 800 (1.25) | 3,200 (1.25) |"
    in_short, all_of_it = written("ladder"), written("results")
    assert origin in in_short
    assert in_short.endswith(times)
    assert origin in all_of_it
    assert f"{times} 48 KiB |\n" in all_of_it
    for text in ("**Abacus 9000**, CPU tensors, 2 threads", "weights and bias", "| stage 1 |"):
        assert text not in in_short
        assert text in all_of_it


def test_the_ladder_in_short_has_one_mode_of_compile(recorded):
    recorded.append(measurement(ratios=RATIOS | {"torch.compile reduce-overhead": 1.1, "Triton": 0.9}))
    names = [line.split("|")[1].strip() for line in written("ladder").splitlines() if line.startswith("|")]
    assert names[2:] == ["eager", "torch.compile reduce-overhead", "Triton", "stage 2"]


def test_a_implementation_that_did_not_run_is_in_the_ladder(recorded):
    result = measurement()
    result["rows"] = [row for row in result["rows"] if row["name"] != "torch.compile" or row["B"] == 16]
    recorded.append(result)
    assert "| torch.compile | 125 (0.80) | 500 (0.80) | not run | not run | not run |" in written("results")


def test_stale_rows_are_marked(recorded):
    result = measurement()
    recorded.append(result)
    assert "tale" not in written("ladder") + written("stage-2")
    result["sources"]["2"] = "what it was"
    assert "| stage 2 (stale: sources changed since) | 80 (1.25)" in written("ladder")
    assert "| stage 1 | 100" in written("results")
    assert "Stale: the sources have changed since this was measured." in written("stage-2")
    assert "Stale" not in written("stage-1")


def test_a_stage_against_its_peers(recorded):
    recorded.append(measurement())
    text = written("stage-2")
    assert "| size | pass | eager | strongest peer | stage 2 | times as fast as eager | as the peer |" in text
    assert "| B64 I1024 S128 | forward+backward | 4,000 | eager 4,000 | 3,200 | 1.25 | 1.25 |" in text
    assert written("ladder-chart").startswith("<picture>\n")
    assert text.endswith("[recorded results](docs/results/README.md).")
    assert "- Of 8 cases against eager: faster in 8, about the same in 0, never slower." in text
    assert "48 KiB; by eager 64 KiB" in text
    assert "against eager: faster in 0, about the same in 8, never slower." in written("stage-1")


def test_what_is_slower_is_said_as_plainly(recorded):
    result = measurement(ratios=RATIOS | {"stage 2": 0.9})
    for row in result["rows"]:
        if row["name"] == "stage 2" and row["pass"] == "forward+backward" and row["B"] == 16:
            row["ratio"] = 1.4
    recorded.append(result)
    text = written("stage-2")
    lost = "faster in 6, about the same in 0, **slower in 2, at worst {} times as fast (B16 I32 S128)**."
    assert f"- Of 8 cases against eager: {lost.format('0.71')}" in text
    assert f"- Of 8 cases against torch.compile: {lost.format('0.89')}" in text


PEERS = RATIOS | {
    "torch.compile reduce-overhead": 0.75,
    "CUDA graph of eager": 0.42,
    "CUDA graph of torch.compile": 0.4,
}
CELLS = {"stage 2": 0.8, "stage 3": 0.5, "stage 5": 0.9, "stage 6": 0.25}


def test_the_strongest_peers_are_in_the_ladder_and_in_the_headline(recorded):
    recorded.append(measurement("h200", gpu="NVIDIA H200", ratios=PEERS | CELLS))
    lines = [line.split(" | ") for line in written("ladder").splitlines() if line.startswith("| ")][2:]
    assert [line[0].removeprefix("| ").removesuffix(" (stale: sources changed since)") for line in lines] == [
        *("eager", "CUDA graph of eager", "CUDA graph of torch.compile"),
        *CELLS,
    ]
    assert lines[2][1:3] == ["40 (2.50)", "160 (2.50)"]
    said = written("headline")
    gain = "4.00 times as fast as eager and 1.60 times as fast as the strongest peer (CUDA graph of torch.compile)"
    assert f"**At B16 I32 S128, stage 6 is {gain}.** At B4096 I1024 S1024" in said
    assert "Stage 5 (1.11) is slower than stage 3 (2.00), because" in said
    assert "not measured" not in said
    line = "| B16 I32 S128 | forward | 100 | CUDA graph of torch.compile 40 | 25 | 4.00 | 1.60 |"
    assert line in written("stage-6")


def test_a_peer_that_an_older_record_lacks_is_not_measured(recorded):
    recorded.append(measurement("h200", gpu="NVIDIA H200", ratios=RATIOS | CELLS))
    missing = " | ".join(["not measured"] * 4)
    for name in ("CUDA graph of eager", "CUDA graph of torch.compile"):
        assert f"| {name} | {missing} |" in written("ladder")
    assert "(CUDA graph of eager and CUDA graph of torch.compile: not measured.)" in written("headline")
    assert "stage 6 is 4.00 times as fast as eager.**" in written("headline")


def test_a_cpu_has_no_cuda_graphs(recorded):
    recorded.append(measurement())
    assert "CUDA graph" not in written("ladder")


def test_the_headline_has_stage_7_in_each_kind_of_numbers(recorded):
    facts = {"cell": "lstm", "T": 9, "B": 2, "I": 4, "S": 8, "maths": "IEEE", "device": "cuda"}
    times = {
        "cuDNN LSTM": (None, 2.0),
        "FlashRNN, fused": (None, 1.5),
        "stage 7": (7, 0.5),
        "stage 7, grid": (7, 0.4),
    }
    rows = [
        {**facts, "dtype": dtype, "name": name, "stage": stage, "pass": "forward+backward", "ratio": ratio}
        for dtype in ("float32", "bfloat16")
        for name, (stage, ratio) in times.items()
    ]
    recorded.append(measurement(gpu="Slide Rule") | {"rows": [], "sequences": rows})
    gain = "3.00 (FlashRNN, fused) in"
    assert f"{gain} float32 (IEEE), {gain} bfloat16, float16 (not measured)." in written("headline")
    rows += [row | {"dtype": "float16"} for row in rows[:4]]
    assert f"{gain} float16." in written("headline")


def test_the_table_of_stages():
    text = written("stages")
    assert "| 2 | [C++ with ATen](stages/stage2_aten) | cell | host | `make stage-2` |" in text
    for stage in stages.STAGES:
        assert stage.title in text
        if not stage.is_here:
            assert (
                f"| {stage.number} | {stage.title} | {stage.kind} | {', '.join(stage.targets)} | not here yet |"
                in text
            )


def test_the_tutorials_times_beside_the_recorded_ones(recorded):
    recorded.append(measurement() | {"name": "here"})
    recorded[0]["rows"] = [
        row
        | {
            "name": "stage 2",
            "device": "cpu",
            "B": 16,
            "I": 32,
            "S": 128,
            "grads": "all",
            "pass": name,
            "ratio": ratio,
        }
        for row in recorded[0]["rows"][:1]
        for name, ratio in (("forward", 0.75), ("forward+backward", 0.8))
    ]
    cpu, cuda, kernels = published_table.published_table().splitlines()[2:]
    assert cpu == "| C++ (stage 2) | CPU | 1.45 / 1.20 | 1.33 / 1.25 |"
    assert cuda.endswith("| 1.25 / 1.10 | – |")
    assert kernels.endswith("| 1.45 / 1.38 | – |")


def test_sequences_are_compared_with_the_fastest_other(recorded):
    facts = {"cell": "lstm", "T": 9, "B": 2, "I": 4, "S": 8, "dtype": "bfloat16", "maths": "IEEE", "device": "cuda"}
    times = {
        ("cuDNN LSTM", None): 2.0,
        ("eager loop", None): 8.0,
        ("FlashRNN, fused", None): 1.5,
        ("stage 7", 7): 0.5,
    }
    times |= {("stage 7, grid", 7): 0.25}
    rows = [
        {
            **facts,
            "name": name,
            "stage": stage,
            "pass": which,
            "median": 1e3 * time,
            "ratio": time,
            "peak_bytes": 2**20,
        }
        for which in ("forward", "forward+backward")
        for (name, stage), time in times.items()
    ]
    rows += [row | {"cell": "lltm"} for row in rows if row["name"] == "stage 7"]
    recorded.append(measurement(gpu="Slide Rule") | {"rows": [], "sequences": rows})
    origin, _, _, _, forward, both, other, _ = sequences_table.sequences_table().splitlines()
    assert origin.startswith("**Slide Rule**, CUDA tensors, torch 2.15.0")
    what = "LSTM T9 B2 I4 S8, bfloat16"
    mark = " (stale: sources changed since)"
    cells = f"2.00 | 8.00 | FlashRNN, fused 1.50 | 0.50{mark} | 3.0 | 1 MiB | 1 MiB |"
    assert [forward, both] == [f"| {what} | {name} | {cells}" for name in ("forward", "forward+backward")]
    assert other == f"| LLTM T9 B2 I4 S8, bfloat16 | forward | – | – | – | 0.50{mark} | – | – | 1 MiB |"
    assert published_table.published_table().splitlines()[0] == "| version | tensors | tutorial |"


def test_small_numbers_keep_a_decimal():
    row = measurement()["rows"][0]
    assert formatting.format_microseconds(row | {"median": 9.87}) == "9.9"
    assert rows.size_in_memory(row | {"saved_bytes": 3 * 2**20}) == "3.0 MiB"
