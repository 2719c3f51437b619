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
# The same, or the system's Python if there is no .venv yet: for commands that need no packages.
any_python := "$(if $(filter .venv/bin/python,$(PYTHON)),$(or $(wildcard $(PYTHON)),python3),$(PYTHON))"

export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache
# What setup.py builds: with Python's own flags, but no debug information, which doubles the time for torch's headers.
# (All flags, since newer versions of setuptools take CFLAGS for Python's, not beside them.)
ifeq ($(origin CFLAGS),undefined)
export CFLAGS := $(shell $(any_python) -c 'import sysconfig; print(sysconfig.get_config_var("CFLAGS") or "", "-g0")' 2>/dev/null)
own_flags := yes
endif
clang_format := $(python) -c 'import clang_format; clang_format.clang_format()'
codespell := $(python) -c 'from codespell_lib import _script_main as main; raise SystemExit(main())'
import_linter := $(python) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
# NAME counts only on the command line: in WSL2, the environment variable NAME is the name of the computer.
given_name = $(if $(filter command,$(firstword $(origin NAME))),$(NAME))
cpp_sources = $(shell find stages common tests docs -not -path '*/wrong/*' '(' -name '*.h' -o -name '*.cpp' \
	-o -name '*.cu' -o -name '*.cuh' ')')

# The folders of common/studies/: the commands of a study are called like its folder, with an ending if there are several.
studies := $(subst _,-,$(patsubst common/studies/%/__init__.py,%,$(wildcard common/studies/*/__init__.py)))

.PHONY: help start tour lab report doctor progress clean next emulate new check watch answers hint reset solution grade bench \
	test prove setup format lint tables notebooks $(studies) python any-python torch
.DELETE_ON_ERROR:

help: any-python
	@$(any_python) -m common help

# Commands that need no packages, those that need torch, and those that need everything; the table in
# common/commands/table.py describes each.
tour lab report: setup
	@$(python) -m common $@

doctor: any-python  # it lists the variables that the user has set
	@$(if $(own_flags),env -u CFLAGS) $(any_python) -m common doctor

progress clean: any-python
	@$(any_python) -m common $@

stage-%: torch
	@$(python) -m common stage $*

diff-%: any-python
	@$(any_python) -m common diff $(subst -, ,$*) $(if $(STEP),--step "$(STEP)")

emulate: any-python
	@$(any_python) -m common emulate "$(FILE)" $(ARGS)

start: torch
	@$(python) -m common start $(if $(TEXT),--text)

new: torch
	@$(python) -m common new "$(given_name)" --folder "$(DIR)" $(if $(KIND),--kind "$(KIND)")

# Status 3 says that the work does not pass yet. This is not an error of make, which would print an extra line for it.
# A script that needs the status calls `python -m common check`.
check: torch
	@$(python) -m common check $(EX) $(if $(STARTER),--starter) || [ $$? -eq 3 ]

next watch answers: torch
	@$(python) -m common $@ $(EX)

hint reset: any-python
	@$(any_python) -m common $@ $(EX)

solution: any-python
	@$(any_python) -m common solution $(EX) $(if $(TAKE),--take)

grade: torch
	@$(python) -m common grade "$(DIR)" --only "$(EX)" --csv "$(CSV)" --json "$(JSON)" --jobs "$(or $(JOBS),0)" \
		--sandbox "$(SANDBOX)" --image "$(IMAGE)"

bench: torch
	@$(python) -m common bench $(if $(TUNED),--tuned)

# One test at a time for each core, if there is the memory (tests/support/suite/scheduling.py).
pytest := $(python) -m pytest -n $(or $(JOBS),auto) --no-loadscope-reorder

test: setup
	@$(pytest) --proofs=sample $(ARGS)

prove: setup
	@$(pytest) --proofs=$(if $(EX),all,record) -m proof $(ARGS) $(if $(EX),tests/exercises/test_exercises.py \
		$(if $(filter-out all,$(EX)),-k "$(EX)"))

setup: python
	@$(python) -m common setup

format: setup
	@$(python) -m ruff check --quiet --fix --exit-zero .
	@$(python) -m ruff format --quiet .
	@$(clang_format) -i $(cpp_sources)

lint: setup
	@$(python) -m ruff check --quiet .
	@$(python) -m ruff format --quiet --check .
	@$(clang_format) --dry-run -Werror $(cpp_sources)
	@$(import_linter)
	@$(codespell)
	@$(python) tests/support/suite/places.py
	@$(python) -m common notebooks --check
	@$(python) -m common tables --check

tables notebooks: setup
	@$(python) -m common $@

# A study reads its variables, such as RECORD=..., from the environment; `python -m common NAME --help` lists its options.
$(studies): torch
	@$(python) -m common $@

$(foreach study,$(studies),$(eval $(study)-%: torch ; @$$(python) -m common $$@))

# The rules below are prerequisites of the targets above.
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
