# The list of commands. Each does its own set-up; the environment lives in .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
CORES := $(shell nproc 2>/dev/null || echo 2)
PYTEST := $(BIN)/python -m pytest -n $(CORES) --dist worksteal

# Most tests start Python: it keeps what it compiled, whatever the machine is set to.
unexport PYTHONDONTWRITEBYTECODE

# Tests run side by side: more threads than cores would only wait for each other.
test docs clients: export OMP_NUM_THREADS := 1

.PHONY: help demo test static format docs clients check bench clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

demo: .venv/demo-ready  ## train five small networks on noisy digits, then predict, score and report
	$(BIN)/accord demo --out accord-demo

test: .venv/dev-ready  ## every test, with doctests
	$(PYTEST) tests src/accord --doctest-modules

static: .venv/dev-ready  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: .venv/dev-ready  ## put the code into its standard form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/dev-ready  ## run what README, docs and examples show; check every link
	$(PYTEST) docs/test_documents.py

clients: .venv/clients-ready  ## the installed package and real frameworks, as a stranger would use them
	@# Ray's mostly wait: they begin, and the others run beside them.
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder clients/test_ray.py clients

check: static test docs  ## all of the above that needs no other package

bench: .venv/dev-ready  ## time the kernels and the record against their peers
	$(BIN)/accord bench

clean:  ## remove the environment and everything that was built
	rm -rf .venv build dist accord-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Accord needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another with: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv

.venv/demo-ready: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[train,report]'
	@touch $@

.venv/clients-ready: .venv/dev-ready
	$(PIP) --editable '.[dev,all]' torchmetrics cleanlab crowd-kit
	@touch $@

.venv/dev-ready: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[dev]'
	@touch $@ .venv/demo-ready
