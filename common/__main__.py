"""The command line: `python -m common COMMAND`. The Makefile calls nothing else of ours."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from .errors import UserError

# Commands that take the name of an exercise.
EXERCISES = {
    "check": "check an exercise, or `all` that were begun",
    "hint": "one hint more",
    "solution": "the solution, as a diff against one's own",
    "reset": "a fresh copy of an exercise; the old work is kept aside",
    "watch": "check an exercise whenever a file is saved",
}


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are as short as all others."""

    def error(self, message: str) -> NoReturn:
        """Called by argparse for an argument that does not fit."""
        raise UserError(f"{self.prog.removeprefix('python -m common ')}: {message}")


def parser() -> argparse.ArgumentParser:
    """Every command and its options."""
    top = Parser(prog="python -m common", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)

    def add(name: str, help: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=help, description=help)

    add("setup", "install what is missing")
    add("doctor", "what this machine has and lacks, and the fix for each thing")
    add("tour", "build, check and time every stage that this machine can run, and write a report")
    stage = add("stage", "build, check and time one stage")
    stage.add_argument("number", type=int)
    stage.add_argument("--target", help="cuda, host or emulator; the best of this machine if left out")
    stage.add_argument("--seed", type=int, help="the numbers of an earlier check, as its failure names them")
    diff = add("diff", "the difference between two stages: lltm.py, csrc/ and setup.py")
    diff.add_argument("old", type=int)
    diff.add_argument("new", type=int)
    emulate = add("emulate", "run any CUDA program without a GPU, under all checks")
    emulate.add_argument("file")
    emulate.add_argument("arguments", nargs=argparse.REMAINDER, help="for the program")
    new = add("new", "a folder of one's own with stage 5's operators under another name")
    new.add_argument("name", help="of the package, the function and the operators' namespace")
    new.add_argument("--folder", help="where it goes; work/ if left out")
    bench = add("bench", "the full measurement, against eager and torch.compile in the same run")
    bench.add_argument("--quick", action="store_true", help="fewer sizes and rounds")
    bench.add_argument("--tuned", action="store_true", help="against torch.compile's max-autotune too: minutes more")
    bench.add_argument("--output", help="where the JSON goes (out/bench.json if left out)")
    sanitize = add(
        "sanitize", "every kernel under compute-sanitizer's tools, on a GPU; writes docs/results/sanitizer.json"
    )
    sanitize.add_argument("--stage", type=int, help="only this one; the record of the others stays")
    add("finders", "who finds the mistakes of tests/checks, on a GPU; writes docs/results/checks.json")
    ncu = add("ncu", "the emulator's counts beside Nsight Compute's, on a GPU; writes docs/results/ncu.json")
    ncu.add_argument("--emulator", action="store_true", help="only the emulator's side anew; needs no GPU")
    ncu.add_argument("--stage", type=int, help="only this one under ncu; the record of the others stays")
    ablation = add("ablation", "stage 6 without each of its ideas, and with each alone")
    ablation.add_argument("--out", help="where the JSON goes (out/ablation.json if left out)")
    parts = ("cuda", "cpu", "kernels", "counts")
    ablation.add_argument("--only", nargs="+", default=[], choices=parts, help="some of its parts")
    wheels = add("wheels", "where a wheel runs: Pythons and versions of torch; writes docs/results/wheels.json")
    wheels.add_argument("--python", nargs="+", default=[sys.executable], help="Pythons to try; this one if left out")
    wheels.add_argument("--torch", nargs="+", help="versions to try; the oldest supported and this one's if left out")
    add("report", "the pictures of the last measurement: out/report.html")
    tables = add("tables", "rewrite every generated table in README.md, stages/ and docs/")
    tables.add_argument("--check", action="store_true", help="change nothing; fail if one is out of date")
    notebooks = add("notebooks", "write each .ipynb from its .py, without outputs")
    notebooks.add_argument("--check", action="store_true", help="change nothing; fail if one is out of date")
    add("lab", "JupyterLab on a copy of the notebooks in work/")
    add("next", "the next exercise: what to do, and where")
    for name, help in EXERCISES.items():
        command = add(name, help)
        command.add_argument("exercise", nargs="?", help="such as 3/guard; the current one if left out")
        if name == "solution":
            command.add_argument("--take", action="store_true", help="go on with it; what you have is kept aside")
    add("prove", "what each variant of an exercise is told").add_argument("exercise")
    add("progress", "which exercises are solved")
    grade = add("grade", "a table of a class's work: out/grades.csv and out/grades.json")
    grade.add_argument("folder", help="holds a folder for each student, laid out as work/ is")
    grade.add_argument("--only", help="exercises, such as '3/guard 3/backward_kernel'; all if left out")
    grade.add_argument("--csv", help="where the table goes")
    grade.add_argument("--json", help="where every message goes")
    grade.add_argument("--sandbox", help="bubblewrap, podman, docker or none")
    grade.add_argument("--image", help="for podman and docker: see docs/teaching.md")
    grade.add_argument("--jobs", type=int, help="students at a time")
    add("clean", "remove build/ and out/")
    return top


def run(arguments: argparse.Namespace) -> int:
    """Runs one command; heavy imports happen here, each only for the commands that need it."""
    match arguments.command:
        case "setup":
            from .environment import setup

            return setup()
        case "doctor":
            from .doctor import doctor

            return doctor()
        case "tour":
            from .tour import tour

            return tour()
        case "stage":
            from .tour import stage

            return stage(arguments.number, arguments.target, arguments.seed)
        case "diff":
            from .diff import diff

            return diff(arguments.old, arguments.new)
        case "emulate":
            from .emulate import emulate

            return emulate(arguments.file, arguments.arguments)
        case "new":
            from .new import new

            return new(arguments.name, arguments.folder)
        case "bench":
            from .bench import bench

            return bench(arguments.quick, arguments.output, arguments.tuned)
        case "sanitize":
            from .sanitizer import sanitize

            return sanitize(arguments.stage)
        case "finders":
            from .finders import compare

            return compare()
        case "ncu":
            from .ncu import ncu

            return ncu(arguments.emulator, arguments.stage)
        case "ablation":
            from .ablation import ablation

            return ablation(arguments.out, arguments.only)
        case "wheels":
            from .wheels import record

            return record(arguments.python, arguments.torch)
        case "report":
            from .report import report

            return report()
        case "tables":
            from .tables import tables

            return tables(check=arguments.check)
        case "notebooks":
            from .notebooks import pair

            return pair(check=arguments.check)
        case "lab":
            from .notebooks import lab

            return lab()
        case "next" | "check" | "hint" | "solution" | "reset" | "watch" | "progress":
            from .exercises import commands

            if arguments.command == "solution":
                return commands.solution(arguments.exercise or None, arguments.take)
            if arguments.command == "watch":
                from .exercises.on_save import watch

                return watch(arguments.exercise or None)
            if arguments.command in EXERCISES:
                return getattr(commands, arguments.command)(arguments.exercise or None)
            return commands.progress() if arguments.command == "progress" else commands.next_one()
        case "prove":
            from .exercises import commands

            return commands.prove(arguments.exercise)
        case "grade":
            from .exercises.grade import grade

            return grade(
                arguments.folder,
                only=(arguments.only or "").split(),
                kind=arguments.sandbox,
                image=arguments.image,
                jobs=arguments.jobs,
                csv_path=arguments.csv,
                json_path=arguments.json,
            )
        case "clean":
            from .build import clean

            return clean()
    raise AssertionError(arguments.command)


def main() -> int:
    """Parses the command line; a `UserError` becomes one line on stderr and status 1."""
    try:
        return run(parser().parse_args())
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
