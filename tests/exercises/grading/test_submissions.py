"""What students hand in: only plain files of a reasonable size get through, and only plain text comes out."""

from __future__ import annotations

import os
import time
import unicodedata
from pathlib import Path

import pytest

from common.errors import UserError
from common.exercises import every, variants, workspace
from common.exercises.grading import submissions
from common.exercises.grading.submissions import Refused


@pytest.fixture
def answer(tmp_path) -> Path:
    made = tmp_path / "class" / "ada" / "1" / "gates"
    (made / "csrc").mkdir(parents=True)
    (made / "lltm.py").write_text("gates = 3\n")
    (made / "csrc" / "lltm.cpp").write_bytes("// ∂\n".encode())
    return made


def test_a_copy_has_the_sources_and_nothing_that_tools_leave_behind(answer, tmp_path):
    for name in (
        "build/temp/lltm.o",
        "__pycache__/lltm.pyc",
        ".git/config",
        "lltm.egg-info/PKG-INFO",
        "_C.cpython.so",
    ):
        (answer / name).parent.mkdir(parents=True, exist_ok=True)
        (answer / name).write_text("left behind")
    (answer / ".venv").symlink_to("/usr")
    submissions.copy_files(answer, tmp_path / "copy")
    copied = {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    assert copied == {"lltm.py", "csrc/lltm.cpp"}
    assert (tmp_path / "copy" / "csrc" / "lltm.cpp").read_text() == "// ∂\n"


def test_links_and_pipes_are_refused(answer, tmp_path):
    (answer / "csrc" / "secret.h").symlink_to("/etc/passwd")
    with pytest.raises(Refused, match=r"csrc/secret\.h is not a regular file"):
        submissions.copy_files(answer, tmp_path / "copy")
    (answer / "csrc" / "secret.h").unlink()
    (answer / "folder").symlink_to("/etc")
    with pytest.raises(Refused, match="folder is not a regular file"):
        submissions.copy_files(answer, tmp_path / "copy")
    (answer / "folder").unlink()
    os.mkfifo(answer / "waits")
    with pytest.raises(Refused, match="waits is not a regular file"):
        submissions.copy_files(answer, tmp_path / "copy")


def test_what_became_a_link_after_it_was_listed_is_not_followed(answer, tmp_path, monkeypatch):
    (answer / "lltm.py").unlink()
    (answer / "lltm.py").symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        submissions._content(str(answer / "lltm.py"), 10)


@pytest.mark.parametrize(
    "content", [b"\x7fELF\x02\x01\x01\0", b"!<arch>\nlltm.o/ \xff", b"text\0", b"// \xff\n", "π".encode("utf-16")]
)
def test_binary_files_are_refused_whatever_their_names(answer, tmp_path, content):
    (answer / "notes.txt").write_bytes(content)
    with pytest.raises(Refused, match=r"notes\.txt is not UTF-8 text; hand in the sources only"):
        submissions.copy_files(answer, tmp_path / "copy")
    assert not (tmp_path / "copy" / "notes.txt").exists()


def test_lines_that_only_a_forger_needs_are_named(answer):
    (answer / "lltm.py").write_text("import sys\nsys.modules['wire'] = None\n")
    (answer / "csrc" / "lltm.cpp").write_text("static int a;\n// sys.modules\nint b = setenv(x);\n")
    given = {"csrc/lltm.cpp": "// sys.modules\n"}
    found = submissions.find_suspicious(answer, given)
    assert found == ["csrc/lltm.cpp:3 (setenv)", "lltm.py:2 (sys.modules)"]


@pytest.mark.parametrize("exercise", every(), ids=lambda exercise: exercise.id)
def test_no_solution_of_ours_needs_such_lines(exercise, tmp_path):
    workspace.write_files(variants.solution(exercise), tmp_path / "work")
    assert submissions.find_suspicious(tmp_path / "work", variants.starter(exercise)) == []


def test_too_much_is_refused_and_not_copied(answer, tmp_path):
    with (answer / "large.bin").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(Refused, match="more than 20 MB"):
        submissions.copy_files(answer, tmp_path / "copy")
    (answer / "large.bin").unlink()
    for k in range(submissions.MOST_FILES):
        (answer / f"{k}.txt").touch()
    with pytest.raises(Refused, match="more than 500 files"):
        submissions.copy_files(answer, tmp_path / "copy")


def test_folders_within_folders_end_somewhere(answer, tmp_path):
    deep = answer.joinpath(*["a"] * 20)
    deep.mkdir(parents=True)
    with pytest.raises(Refused, match="more than 10 folders within each other"):
        submissions.copy_files(answer, tmp_path / "copy")


def test_answers_are_found_in_either_layout(answer, tmp_path):
    student = tmp_path / "class" / "ada"
    assert submissions.find_submission(student, "1/gates") == answer
    assert submissions.find_submission(student, "1/other") is None
    whole = tmp_path / "class" / "bob" / "work" / "1" / "gates"
    whole.mkdir(parents=True)
    assert submissions.find_submission(tmp_path / "class" / "bob", "1/gates") == whole


def test_a_folder_that_is_a_link_is_not_followed(answer, tmp_path):
    student = tmp_path / "class" / "eve"
    student.mkdir()
    (student / "1").symlink_to(answer.parent)
    with pytest.raises(Refused, match="1 is a link"):
        submissions.find_submission(student, "1/gates")


def test_each_folder_is_a_student(answer, tmp_path):
    for name in (".hidden", "__MACOSX", "bob"):
        (tmp_path / "class" / name).mkdir()
    (tmp_path / "class" / "list.txt").touch()
    assert [path.name for path in submissions.find_students(tmp_path / "class")] == ["ada", "bob"]


def test_a_folder_without_students_is_said_to_be_one(tmp_path):
    with pytest.raises(UserError, match="holds no folders"):
        submissions.find_students(tmp_path)
    with pytest.raises(UserError, match="is not a folder"):
        submissions.find_students(tmp_path / "nowhere")


def test_text_cannot_steer_a_terminal_or_run_on():
    assert submissions.sanitize("d_z ∂ ‘ok’\n\t😀") == "d_z ∂ ‘ok’\n\t😀"
    assert submissions.sanitize("\x1b[2J\x07\u202e\x9bx") == "?[2J???x"
    assert submissions.sanitize("x" * 9999, most=5) == "xxxxx [cut after 5 characters]"


EVASIONS = {
    "a namespace": "using namespace emulator;",
    "a mangled name": 'extern char nonce asm("_ZN8emulator5nonceE");',
    "another end": "std::quick_exit(0);",
    "a name in two lines": "emu\\\nlator::nonce();",
    "a name in three lines": "emu\\\nla\\\ntor::nonce();",
    "a name that is put together": "#define JOIN(a, b) a##b",
    "the input": "std::cin >> nonce;",
    "a thread": "std::thread worker(compute);",
    "a thread without std": "thread worker([&] { compute(); });",
    "a thread of Python": "import threading",
    "a pool of threads": "from concurrent.futures import ThreadPoolExecutor",
    "another name of sys": "import sys as s",
    "letters that Python reads as others": "\U0001d530ys.\U0001d52aodules",
    "a counter of calls": "c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::Python);",
}


@pytest.mark.parametrize("code", EVASIONS.values(), ids=EVASIONS)
def test_other_ways_to_write_such_lines_are_named_too(answer, code):
    (answer / "csrc" / "lltm.cpp").write_text(f"int a;\n{code}\n")
    found = submissions.find_suspicious(answer, {})
    assert [line.partition(" ")[0] for line in found] == ["csrc/lltm.cpp:2"]


@pytest.mark.parametrize("code", ["// one thread (of a warp) per row", "x = x.clone()", "thread = threadIdx.x;"])
def test_usual_lines_are_not_named(answer, code):
    (answer / "csrc" / "lltm.cpp").write_text(f"{code}\n")
    assert submissions.find_suspicious(answer, {}) == []


def test_a_long_line_takes_no_time(answer):
    (answer / "csrc" / "lltm.cpp").write_text("ExcludeDispatchKey" * 100_000 + "\\\n" * 1000)
    start = time.monotonic()
    submissions.find_suspicious(answer, {})
    assert time.monotonic() - start < 5


def test_what_is_not_a_folder_is_named_with_the_reason(answer, tmp_path):
    (tmp_path / "class" / "eve").symlink_to(tmp_path / "class" / "ada")
    (tmp_path / "class" / "bob.zip").touch()
    (tmp_path / "class" / "list.txt").touch()
    assert [path.name for path in submissions.find_students(tmp_path / "class")] == ["ada"]
    found = submissions.find_others(tmp_path / "class")
    assert found == {
        "bob.zip": "this is an archive; unpack it into a folder",
        "eve": "this is a link; hand in the files themselves",
        "list.txt": "this is not a folder",
    }


def test_a_class_of_archives_is_told_so(tmp_path):
    (tmp_path / "ada.zip").touch()
    with pytest.raises(UserError, match=r"holds no folders \(only ada\.zip\)"):
        submissions.find_students(tmp_path)


@pytest.mark.parametrize("archive", ["work.zip", "3.tar.gz", "work/all.7z", "3/guard.ZIP", "work/3/guard.tgz"])
def test_an_archive_in_a_students_folder_is_named(tmp_path, archive):
    (tmp_path / archive).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / archive).touch()
    assert submissions.find_submission(tmp_path, "3/guard") is None
    assert submissions.find_elsewhere(tmp_path, "3/guard") == f"there is {archive}, which is not unpacked"


def test_a_link_that_leads_nowhere_and_a_file_are_refused(tmp_path):
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "guard").symlink_to("nowhere")
    with pytest.raises(Refused, match="3/guard is a link"):
        submissions.find_submission(tmp_path, "3/guard")
    (tmp_path / "3" / "launch").touch()
    with pytest.raises(Refused, match="3/launch is a file"):
        submissions.find_submission(tmp_path, "3/launch")


def test_a_name_is_one_line_whatever_it_contains():
    every = [chr(code) for code in range(0x110000)]
    names = {unicodedata.category(c): f"a{c}b" for c in every}
    assert len(names) == 30  # categories
    shown = [submissions.sanitize_name(name) for name in names.values()]
    assert all(len(name.splitlines()) == 1 and name.encode() for name in shown)
    assert len(set(shown)) == 30
    assert submissions.sanitize_name("ada\nbob\\n\udcff") == r"ada\nbob\\n\udcff"
