# The workbook's commands; `make` alone lists them. Each calls `python -m common ...` or a standard tool.
#
# PYTHON=...       the Python to use. Without it: the active virtual or conda environment, else .venv, made if missing.
# EX=3/guard       the exercise that a command means. WORK=dir: where your work is, instead of work/.
# EXERCISES=dir    a teacher's own exercises and checks. BUILD_DIR=dir: where builds go, instead of build/.
# TORCH_INDEX=...  the wheel index that torch comes from; pytorch.org/get-started/locally lists them.

active := $(shell for at in "$$VIRTUAL_ENV" "$$CONDA_PREFIX"; do \
	if [ -n "$$at" ] && [ -x "$$at/bin/python" ]; then echo "$$at/bin/python"; break; fi; done)
PYTHON ?= $(or $(active),.venv/bin/python)
python := "$(PYTHON)"
# The same, or the system's Python while there is no .venv: for what needs no packages.
any_python := "$(if $(filter .venv/bin/python,$(PYTHON)),$(or $(wildcard $(PYTHON)),python3),$(PYTHON))"

export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache
clang_format := $(python) -c 'import clang_format; clang_format.clang_format()'
# Said on the command line: WSL2 has a variable NAME of its own, the computer's.
given_name = $(if $(filter command,$(firstword $(origin NAME))),$(NAME))
cpp_sources = $(shell find stages common tests docs -not -path '*/wrong/*' '(' -name '*.h' -o -name '*.cpp' \
	-o -name '*.cu' -o -name '*.cuh' ')')

.PHONY: grade prove next check hint solution reset progress watch finders wheels help tour test doctor emulate new lab bench report setup clean format lint tables notebooks sanitize ncu ablation python any-python torch
.DELETE_ON_ERROR:

help:
	@awk -F ' *## *' '/^## / { print (groups++ ? "\n" : "") $$2 } \
		/^[a-z%-]+:.*## / { sub(/:.*/, "", $$1); sub(/stage-%/, "stage-2", $$1); sub(/diff-%/, "diff-1-2", $$1); \
		                    printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

## Start here
tour: setup             ## build, check and time every stage that runs here, and write out/report.html
	@$(python) -m common tour

doctor: any-python      ## what this machine has and lacks, and the fix for each thing
	@$(any_python) -m common doctor

## Work with a stage
stage-%: torch          ## build, check and time one stage against eager
	@$(python) -m common stage $*

diff-%: any-python      ## the lesson of a stage: what changed since another
	@$(any_python) -m common diff $(subst -, ,$*)

emulate: any-python     ## run any CUDA program without a GPU, under all checks: FILE=x.cu ARGS="..." COUNTS=1
	@$(any_python) -m common emulate "$(FILE)" $(ARGS)

new: torch              ## an operator of your own, begun from stage 5 in work/: NAME=mycell; DIR=~/code for elsewhere
	@$(python) -m common new "$(given_name)" --folder "$(DIR)"

lab: setup              ## JupyterLab on a copy of the notebooks in work/
	@$(python) -m common lab

## Exercises
next: torch             ## the next exercise: what to do, and where
	@$(python) -m common next

check: torch            ## check your work: the current exercise, EX=3/guard, or EX=all
	@$(python) -m common check $(EX)

hint: any-python        ## one hint more each time
	@$(any_python) -m common hint $(EX)

solution: any-python    ## the solution, as a diff against yours; TAKE=1 goes on with it
	@$(any_python) -m common solution $(EX) $(if $(TAKE),--take)

reset: any-python       ## begin an exercise anew; what you had is kept aside
	@$(any_python) -m common reset $(EX)

progress: any-python    ## which exercises are solved
	@$(any_python) -m common progress

watch: torch            ## check whenever you save
	@$(python) -m common watch $(EX)

grade: torch            ## grade a class: DIR=submissions/, a folder in it for each student; docs/teaching.md
	@$(python) -m common grade "$(DIR)" --only "$(EX)" --csv "$(CSV)" --json "$(JSON)" --jobs "$(or $(JOBS),0)" \
		--sandbox "$(SANDBOX)" --image "$(IMAGE)"

## Measure
bench: torch            ## the full measurement, against eager and torch.compile in the same run; TUNED=1: max-autotune too
	@$(python) -m common bench $(if $(TUNED),--tuned)

report: setup           ## the pictures of the last measurement: out/report.html
	@$(python) -m common report

## The workbook itself
test: setup             ## run all tests, as many at a time as there are cores, at most four; JOBS=12: that many
	@$(python) -m pytest -n $(or $(JOBS),auto --maxprocesses 4) --dist loadfile --no-loadscope-reorder

prove: setup            ## prove every exercise, or EX=3/guard: starter, solution, wrong answers; writes tests/proof.json
	@PROVE=all $(python) -m pytest tests/test_exercises.py $(if $(EX),-k "$(EX)")

setup: python           ## install what is missing; TORCH_INDEX=... takes torch from another wheel index
	@$(python) -m common setup

clean: any-python       ## remove build/ and out/
	@$(any_python) -m common clean

## For maintainers
format: setup           ## format Python, C++ and CUDA
	@$(python) -m ruff check --quiet --fix --exit-zero .
	@$(python) -m ruff format --quiet .
	@$(clang_format) -i $(cpp_sources)

lint: setup             ## check format, Python, notebooks and generated tables; change nothing
	@$(python) -m ruff check --quiet .
	@$(python) -m ruff format --quiet --check .
	@$(clang_format) --dry-run -Werror $(cpp_sources)
	@$(python) -m common notebooks --check
	@$(python) -m common tables --check

tables: setup           ## rewrite every generated table in README.md, stages/ and docs/
	@$(python) -m common tables

sanitize: torch         ## every kernel under compute-sanitizer, on a GPU; writes docs/results/sanitizer.json
	@$(python) -m common sanitize

ncu: torch              ## the emulator's counts beside Nsight Compute's, on a GPU; writes docs/results/ncu.json
	@$(python) -m common ncu

ablation: torch         ## stage 6 without each of its ideas, and with each alone; writes out/ablation.json, or RECORD=...
	@$(python) -m common ablation $(if $(RECORD),--out "$(RECORD)") $(if $(ONLY),--only $(ONLY))

wheels: torch           ## which wheel runs with PYTHONS="..." and TORCHES="2.11 ..."; writes docs/results/wheels.json
	@$(python) -m common wheels $(if $(PYTHONS),--python $(PYTHONS)) $(if $(TORCHES),--torch $(TORCHES))

finders: torch          ## who finds the mistakes of tests/checks, on a GPU; writes docs/results/checks.json
	@$(python) -m common finders

notebooks: setup        ## write each .ipynb from its .py, without outputs
	@$(python) -m common notebooks

# Below: what the targets above rest on.
define demand_python_3_10
@$(1) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	echo 'error: $(subst ",,$(1)) is not Python 3.10 or newer; $(2)' >&2; exit 1; }
endef
name_another := name one that is, such as: make PYTHON=/usr/bin/python3.12

python: $(filter .venv/bin/python,$(PYTHON))
	$(call demand_python_3_10,$(python),$(name_another))

any-python:
	$(call demand_python_3_10,$(any_python),$(name_another))

torch: python
	@$(python) -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' \
		|| $(python) -m common setup

.venv/bin/python:
	$(call demand_python_3_10,python3,make .venv with one that is: python3.12 -m venv .venv)
	@echo 'Making .venv'; python3 -m venv --clear .venv >/dev/null || { rm -rf .venv; \
		echo 'error: python3 cannot make .venv; on Debian and Ubuntu: sudo apt install python3-venv' >&2; exit 1; }
