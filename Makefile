# make demo    play TS-Gen and others on 50 tasks and draw their regret
# make test    run the tests
# make lint    ruff and mypy
# make docs    the documentation site in site/, with warnings as errors
# make bench   speed, as ratios measured in one run
# make slow    what is slow by nature, on request and before a release:
#   make lowest     tests with every dependency at its lower bound, in .venv-lowest
#   make libraries  RLlib, torchrl, tianshou and skrl train, and coba plays, each in its own .venv-<library>
#   make notebook   examples/first_evaluation.py as a notebook, executed at a small size
#   make torture    kill commands and tamper with their files for an hour (make slow: a minute)
#   make kills      kill a process that decides and learns live 200 times (make slow: 10 times)
# Each sets up .venv first if it is missing or out of date, and needs only Python 3.11 or newer.

PYTHON ?= python3
BIN := .venv/bin
DEMO := results/demo-$(shell date +%Y%m%d-%H%M%S)
# Linear algebra here is small and batched: one thread per process is fastest.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test lint docs notebook bench slow lowest libraries torture kills
.DELETE_ON_ERROR:

demo: .venv/core.stamp
	$(BIN)/gents-gym evaluate --env gents_gym/Synthetic-v0 --tasks 50 --seed 0 --out $(DEMO) \
	  --agents random lints "lints(prior=fitted)" linucb "linucb(intercept=True)" ts-gen gen-ucb greedy oracle
	$(BIN)/gents-gym report $(DEMO)
	@echo "The picture: $(DEMO)/regret.png"

# Freed memory stays with the process: the system takes long to clear it again.
test: export MALLOC_MMAP_THRESHOLD_ = 1000000000
test: export MALLOC_TRIM_THRESHOLD_ = 1000000000
test: .venv/dev.stamp
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site: site/index.html; with search: $(BIN)/python -m http.server -d site"

notebook: .venv/docs.stamp
	mkdir -p results
	$(BIN)/jupytext --quiet --to ipynb --output results/first_evaluation.ipynb examples/first_evaluation.py
	TASKS=$(or $(TASKS),5) HORIZON=$(or $(HORIZON),50) $(BIN)/python -m jupyter execute --inplace results/first_evaluation.ipynb
	@echo "The notebook: results/first_evaluation.ipynb"

bench: .venv/dev.stamp
	$(BIN)/gents-gym bench

torture: .venv/dev.stamp
	$(BIN)/python tests/torture.py --seconds $(or $(SECONDS_OF_TORTURE),3600)

kills: .venv/dev.stamp
	$(BIN)/python tests/live/kills.py --kills $(or $(KILLS),200)

slow: .venv/dev.stamp lowest libraries docs notebook
	$(BIN)/python -m pytest -n 2 -m slow
	$(MAKE) torture SECONDS_OF_TORTURE=60
	$(MAKE) kills KILLS=10
	$(BIN)/gents-gym reproduce main --scale small --out results/slow-$(shell date +%Y%m%d-%H%M%S)

# torch stays at the version of constraints.txt: each version is a download of gigabytes. TORCH=2.6.0 tries another.
TORCH ?= $(shell sed -n 's/^torch==//p' constraints.txt)
LOWEST_TESTS ?= tests/envs tests/evaluation tests/policies tests/agents/test_linear.py tests/agents/test_ts_gen.py \
  tests/agents/adapters tests/training tests/report tests/cli tests/test_files.py tests/test_taskfile.py tests/test_types.py

lowest: .venv-lowest/stamp
	.venv-lowest/bin/python -m pytest -n 2 -W default $(LOWEST_TESTS)

.venv-lowest/stamp: pyproject.toml .ci/lowest.py
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python .ci/lowest.py torch==$(TORCH) > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-lowest/constraints.txt \
	  -e '.[bench,dask,ray,vw]' pandas pytest pytest-xdist
	touch $@

libraries: library-rllib library-torchrl library-tianshou library-skrl library-coba
library-rllib: NEEDS = 'ray[rllib]==2.60.0'
library-torchrl: NEEDS = torchrl==0.14.1
library-tianshou: NEEDS = tianshou==2.0.1
library-skrl: NEEDS = 'skrl[torch]==2.1.1'
library-coba: NEEDS = coba==8.1.0
library-%:
	test -d .venv-$* || $(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check torch==$(TORCH) $(NEEDS) -e .
	.venv-$*/bin/python examples/libraries/*_$*.py

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/core.stamp: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/dev.stamp: .venv/core.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

.venv/docs.stamp: .venv/core.stamp
	$(BIN)/python -m pip install -qqq --disable-pip-version-check -c constraints.txt -e '.[docs]' || \
	  { echo "make docs and make notebook need the extra docs, which pip could not install: pip install -e '.[docs]'"; exit 1; }
	touch $@
