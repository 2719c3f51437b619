"""The maintainers' wing: what is measured or tried once in a while, recorded, and shown on the pages.

A study is one folder, and is added and removed with it. The folder NAME contains

- `__init__.py`, which declares `STUDY` (common/study.py): its commands, its records, and its generated blocks,
- `recorder.py`, which measures and writes `docs/results/studies/NAME.json`; or, in a study of several parts, a module
  for each PART, which writes `NAME_PART.json`,
- `table.py` and `chart.py`, which show the record, if a page or a notebook does, and
- the programs that the recorder compiles.

Its commands are called NAME or NAME-PART, with - instead of _. The Makefile has one rule for the commands of all
folders, and they read variables from the environment (`make ablation ONLY=cpu`). A table stands wherever a page has
its block. The tests of the study are in tests/studies/NAME/.

No package of common/ imports a study: the command line and the generated pages ask the folders what they declare.
No study imports another, so each can be removed. What two of them need is in a package below, such as
common/gpu_tools/.
"""
