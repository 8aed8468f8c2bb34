# make demo    play TS-Gen and others on 50 tasks and draw their regret
# make test    run the tests
# make lint    ruff and mypy
# make bench   speed, as ratios measured in one run
# make torture kill commands and tamper with their files for an hour (SECONDS_OF_TORTURE=60: a minute)
# Each sets up .venv first where it is missing or out of date, and needs Python 3.11 or newer alone.

PYTHON ?= python3
BIN := .venv/bin
DEMO := results/demo-$(shell date +%Y%m%d-%H%M%S)
# Linear algebra here is small and batched: one thread per process is fastest.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test lint bench torture
.DELETE_ON_ERROR:

demo: .venv/core.stamp
	$(BIN)/gents-gym evaluate --env gents_gym/Synthetic-v0 --tasks 50 --seed 0 --out $(DEMO) \
	  --agents random lints "lints(prior=fitted)" linucb "linucb(intercept=True)" ts-gen gen-ucb greedy oracle
	$(BIN)/gents-gym report $(DEMO)
	@echo "The picture: $(DEMO)/regret.png"

test: .venv/dev.stamp
	$(BIN)/python -m pytest -n 2

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/dev.stamp
	$(BIN)/gents-gym bench

torture: .venv/dev.stamp
	$(BIN)/python tests/torture.py --seconds $(or $(SECONDS_OF_TORTURE),3600)

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/core.stamp: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/dev.stamp: .venv/core.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
