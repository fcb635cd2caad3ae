# Each target sets up what it needs; the environment is in .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
CORES := $(shell nproc 2>/dev/null || echo 2)
PYTEST := $(BIN)/python -m pytest -n $(CORES) --dist worksteal

# Most tests start Python: let it cache bytecode even if the machine disables that.
unexport PYTHONDONTWRITEBYTECODE

# Tests run in parallel: more threads than cores would wait for each other.
test docs clients: export OMP_NUM_THREADS := 1

.PHONY: help demo test static format docs clients check bench clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

demo: .venv/demo-ready  ## train five small networks on noisy digits, then predict, score and report
	$(BIN)/accord demo --out accord-demo

test: .venv/dev-ready  ## run all tests and doctests
	$(PYTEST) tests src/accord --doctest-modules

static: .venv/dev-ready  ## check format, lint, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: .venv/dev-ready  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/dev-ready  ## run the code of README, docs and examples; check links
	$(PYTEST) docs

clients: .venv/clients-ready  ## test the installed package with the real frameworks
	@# The tests of ray mostly wait: start them first, in parallel with the others.
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder clients/test_ray.py clients

check: static test docs  ## static, test and docs

bench: .venv/dev-ready  ## compare the speed of kernels and records with other libraries
	$(BIN)/accord bench

clean:  ## remove the environment and all build outputs
	rm -rf .venv build dist accord-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Accord needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another with: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv

.venv/demo-ready: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[train,report]'
	@touch $@

.venv/clients-ready: .venv/dev-ready
	$(PIP) --editable '.[dev,all]' torchmetrics cleanlab crowd-kit catboost palmerpenguins
	@touch $@

.venv/dev-ready: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[dev]'
	@touch $@ .venv/demo-ready
