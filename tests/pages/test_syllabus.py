"""The list of claims, the tags read from notebooks, tests and exercises, and the page made of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from common.errors import UserError
from common.pages.syllabus import coverage, read_claims, syllabus_table
from common.pages.syllabus_tags import tags_in_notebook, tags_in_tests

# How many lines each stage has: 0.1 to 0.13, 1.1 to 1.4, ...
LINES = {0: 13, 1: 4, 2: 12, 3: 10, 4: 4, 5: 6, 6: 4, 7: 3, 8: 1, 9: 2}

CLAIMS = """
# a comment
1.1 The cell
  a   It adds.
  b!  It never forgets.
1.2 The gradient
  a   It is a product.
"""

NOTEBOOK = """# ---
# jupyter: {}
# ---
# %% [markdown] syllabus="1.1a"
# ## With code
# A sentence.
# %%
1 + 1
# %% [markdown] syllabus="1.1b"
# ## Without code
# %%
# only a comment
# %% [markdown] syllabus="1.2a"
# ## A level down
# %% [markdown]
# ### Below
# %%
print("code of the section above, too")
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small workbook: two lines of syllabus, a notebook, a test and an exercise."""
    for name, text in {
        "docs/claims.txt": CLAIMS,
        "notebooks/01_python.py": NOTEBOOK,
        "tests/cpp/test_cell.py": '@pytest.mark.syllabus("1.1a", "1.2a")\ndef test_adds():\n    pass\n',
        "stages/stage1_python/exercises/add/exercise.ini": "[exercise]\ntitle = Add\nsyllabus = 1.2\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_list_is_complete_and_in_order():
    numbers = [line.number for line in read_claims()]
    assert numbers == [f"{stage}.{k}" for stage, count in LINES.items() for k in range(1, count + 1)]


def test_letters_follow_each_other():
    for line in read_claims():
        letters = "".join(claim.letter for claim in line.claims)
        assert letters, f"{line.number} has no claim"
        assert letters == "abcdefghijklmnopqrstuvwxyz"[: len(letters)], f"{line.number}: {letters}"


def test_claims_read_well_in_a_markdown_table():
    for line in read_claims():
        for name, text in [(line.number, line.title), *((line.number + c.letter, c.text) for c in line.claims)]:
            assert text.count("`") % 2 == 0, f"{name}: a backtick is alone"
            prose = re.sub(r"`[^`]*`", "", text)
            assert "|" not in text, f"{name} would break its table"
            assert not re.search(r"[_*<]", prose), f"{name}: code without backticks"
        for claim in line.claims:
            assert claim.text.endswith("."), f"{line.number}{claim.letter} is no sentence"


def test_a_malformed_list_is_refused_with_its_line(tmp_path):
    path = tmp_path / "claims.txt"
    path.write_text("1.1 The cell\n a wrong indent\n")
    with pytest.raises(UserError, match=r"claims.txt:2: neither a title .* a wrong indent"):
        read_claims(path)


def test_what_counts_as_taught(root):
    taught = coverage(root).taught
    assert [tag.title for tag in taught["1.1a"]] == ["01_python: With code"]
    assert taught["1.1b"] == [], "a section without a code cell, or with a comment for one, teaches nothing"
    assert [tag.title for tag in taught["1.2a"]] == ["01_python: A level down"], "a section includes those below it"


def test_what_counts_as_taught_in_the_build_reference(root):
    path = root / "docs" / "build.md"
    page = "# Page\n\n## By hand!\n<!-- syllabus: 1.1b 1.2a -->\n\nTyped.\n\n{}\n\n## Next\n\n```sh\ntrue\n```\n"
    path.write_text(page.format("```sh fails\nfalse\n```"))
    taught = coverage(root).taught
    assert [(tag.title, tag.link) for tag in taught["1.1b"]] == [("build: By hand!", "docs/build.md#by-hand")]
    assert "[build: By hand!](../docs/build.md#by-hand)" in syllabus_table(root)
    path.write_text(page.format("```python\n1 + 1\n```"))
    assert coverage(root).taught["1.1b"] == [], "the commands of the next section are not this one's"
    path.write_text("# Page\n\nText\n<!-- syllabus: 1.1b -->\n")
    with pytest.raises(UserError, match=r"build.md:4: the line above the tag 1.1b is not a heading"):
        coverage(root)


def test_a_section_ends_at_the_next_heading_of_its_level(root):
    path = root / "notebooks" / "01_python.py"
    path.write_text('# %% [markdown] syllabus="1.1a"\n# ## One\n# %% [markdown]\n# ## Two\n# %%\n1\n')
    assert [tag.counts for tag in tags_in_notebook(path, root)] == [False]
    path.write_text('# %% [markdown] syllabus="1.1a"\n# ## One\n# %% [markdown]\n# No heading.\n# %%\n1\n')
    assert [tag.counts for tag in tags_in_notebook(path, root)] == [True]


def test_tested_and_practised(root):
    found = coverage(root)
    assert [tag.where for tag in found.tested["1.2a"]] == ["tests/cpp/test_cell.py:1"]
    assert found.tested["1.1b"] == []
    assert [tag.title for tag in found.practised["1.2"]] == ["Add"]
    assert found.practised["1.1"] == []


def test_tags_on_classes_and_methods(root):
    path = root / "tests" / "test_more.py"
    path.write_text(
        '@pytest.mark.syllabus("1.1b")\nclass TestCell:\n'
        '    @pytest.mark.syllabus("1.2a")\n    @other\n    def test_it(self):\n        pass\n'
    )
    assert [(tag.claim, tag.title) for tag in tags_in_tests(path, root)] == [
        ("1.1b", "TestCell"),
        ("1.2a", "test_it"),
    ]


@pytest.mark.parametrize(
    ("place", "text", "where"),
    [
        (
            "notebooks/02_aten.py",
            '# %%\n1\n# %% [markdown] syllabus="1.1z"\n# # T\n# %%\n1\n',
            "02_aten.py:3: '1.1z'",
        ),
        ("tests/test_wrong.py", 'x = 1\n@pytest.mark.syllabus("7.7a")\ndef test_it(): pass\n', "wrong.py:2: '7.7a'"),
        (
            "stages/stage1_python/exercises/x/exercise.ini",
            "[exercise]\ntitle = X\nsyllabus = 1.2 1.3\n",
            "exercise.ini:1: '1.3'",
        ),
    ],
)
def test_an_unknown_tag_is_an_error_with_file_and_line(root, place, text, where):
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).write_text(text)
    with pytest.raises(UserError, match=re.escape(where) + " is not in docs/claims.txt"):
        coverage(root)


def test_an_unknown_tag_does_not_hide_in_a_section_without_code(root):
    (root / "notebooks" / "02_aten.py").write_text('# %% [markdown] syllabus="1.1z"\n# # Title\n')
    with pytest.raises(UserError, match=re.escape("02_aten.py:1: '1.1z' is not in docs/claims.txt")):
        coverage(root)


def test_tags_that_cannot_be_read_are_refused(root):
    path = root / "tests" / "test_more.py"
    path.write_text("@pytest.mark.syllabus(NAME)\ndef test_it(): pass\n")
    with pytest.raises(UserError, match=r"test_more.py:1: a syllabus tag must be a plain string, not NAME"):
        tags_in_tests(path, root)
    notebook = root / "notebooks" / "01_python.py"
    notebook.write_text('# %% [markdown] syllabus="1.1a"\n# No heading.\n')
    with pytest.raises(UserError, match=r"01_python.py:1: the cell tagged 1.1a has no heading"):
        tags_in_notebook(notebook, root)


def test_the_page(root):
    page = syllabus_table(root)
    assert "| [Stage 1: The LLTM in Python](#stage-1-the-lltm-in-python) | 2 of 3 | 2 of 3 | 1 of 2 |" in page
    title = "**The gradient** (practised in: [Add](../stages/stage1_python/exercises/add))"
    assert f'| <a id="line-1.2"></a>**1.2** | {title} | | |' in page
    assert (
        "| 1.1a | It adds. | [01_python: With code](../notebooks/01_python.ipynb)"
        " | [test_adds](../tests/cpp/test_cell.py) |" in page
    )
    assert "| 1.1b ⚠ | It never forgets. | – | – |" in page, "what is missing must be seen"


def test_the_tags_of_this_workbook_are_all_known():
    found = coverage()
    assert sum(map(len, found.tested.values())) > 0


@pytest.mark.needs("jupytext")
def test_a_notebook_tag_survives_jupytext():
    import jupytext

    cells = jupytext.reads(NOTEBOOK, fmt="py:percent").cells
    tagged = [(cell.cell_type, cell.metadata["syllabus"]) for cell in cells if "syllabus" in cell.metadata]
    assert tagged == [("markdown", "1.1a"), ("markdown", "1.1b"), ("markdown", "1.2a")]
