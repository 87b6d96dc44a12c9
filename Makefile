# make reproduce | test | test-slow | lint | format | docs | install | develop | clean
# Another interpreter (3.11 to 3.13), before .venv exists:  make install PYTHON=python3.12

PYTHON ?= python3
VENV   ?= .venv

# Smoke runs are no results; they have a folder of their own.
SMOKE  ?= runs/smoke
FIRST  ?= runs/first

BIN     := $(VENV)/bin
STAMP   := $(VENV)/installed
TESTED  := $(VENV)/installed-for-tests
TYPED   := ga3c_tf

.PHONY: reproduce test test-slow lint format docs install develop clean

# At most four of the cores, so that A3C with its four agents can use all of them in the comparison with GA3C.
FOUR = $(shell $(PYTHON) -c "import os; print(*sorted(os.sched_getaffinity(0))[:4], sep=',')")

# 1. Seconds of Pong, scored: everything works. 2. The paper's main claim on this machine: does GA3C learn faster than
# A3C in wall-clock time? If ratios scatter as the published ones on CartPole (their logarithm with a
# standard deviation of 0.40), four seeds decide it in 92 % of cases, three in 66 %. 3. Pong, played by the published weights, for its row of Table 3.
reproduce: $(STAMP)
	$(BIN)/ga3c-tf reproduce --figure scores --budget smoke --out $(SMOKE)
	taskset -c $(FOUR) $(BIN)/ga3c-tf reproduce --figure wall-clock --budget quick --games cartpole --seeds 4 --out $(FIRST)
	$(BIN)/ga3c-tf evaluate --pretrained pong --episodes 5 --output $(FIRST)/weights/pong/score.json
	$(BIN)/ga3c-tf report --out $(FIRST)
	@echo "What was found: $(FIRST)/README.md, $(FIRST)/figures/wall-clock-quick.png"

# Two files at a time, whatever the number of cores: some tests train with four processes and more.
test: $(TESTED)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

test-slow: $(TESTED)
	$(BIN)/python -m pytest -m slow --timeout 1200

lint: $(TESTED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(TYPED)
	$(BIN)/lint-imports

format: $(TESTED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# To read it: python3 -m http.server --directory build/site
docs: $(TESTED)
	$(BIN)/python -m mkdocs build --strict

install: $(STAMP)

develop: $(TESTED)

# The packages' __init__ files are here because an editable install lists the packages that it found.
$(STAMP): requirements.txt setup.py ga3c_tf/__init__.py | $(BIN)/pip
	$(BIN)/python -m pip install -r requirements.txt
	$(BIN)/python -m pip install --no-deps -e .
	@touch $@

$(TESTED): tests/requirements.txt $(STAMP)
	$(BIN)/python -m pip install -r tests/requirements.txt
	@touch $@

# Checked beforehand, because a venv without ensurepip stops half way and leaves a folder that looks complete.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
	  echo "ga3c_tf needs Python 3.11 to 3.13; \"$(PYTHON)\" is missing or another version." >&2; \
	  echo "Choose one with: make $(or $(MAKECMDGOALS),reproduce) PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "\"$(PYTHON)\" cannot make virtual environments: its venv or ensurepip module is missing." >&2; \
	  echo "On Debian or Ubuntu: apt-get install python3-venv. Or choose another interpreter:" >&2; \
	  echo "make $(or $(MAKECMDGOALS),reproduce) PYTHON=/path/to/python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +
