"""Public CUDA programs on the emulator: which of them build, and whether they end with success.

    python -m common.studies.public_programs.study FOLDER [--repository NAME] [--only NAME]

FOLDER contains clones of the repositories that programs.py names, or of some of them. Most programs compare their own
results with those of a loop on the CPU or of a library, and their exit status says whether they agree. Programs that
would compute for hours on a CPU get smaller sizes or fewer repetitions; programs.py and book.py have every text that
is replaced. The outcomes go to docs/results/emulator/public_programs.json. Nothing of the repositories is kept.
"""
