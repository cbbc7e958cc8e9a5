# Two commands set up everything on a fresh machine with Python 3.11+: `make app` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
READY := $(VENV)/.ready
DEV := $(VENV)/.dev
.DEFAULT_GOAL := help

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

app: $(READY) ## Set up, then the web app on http://localhost:8501 (PORT=... for another port)
	$(BIN)/ringscope app --port $(PORT)

demo: $(READY) ## Set up, then a predicted table in the terminal
	$(BIN)/ringscope predict --topology dgx-a100 --collective all-reduce --sizes 1KiB:1GiB:x8

test: $(DEV) system ## Set up, then lint, types, architecture and the whole suite
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 --dist loadfile

fuzz: $(DEV) ## Long property tests, by hand
	$(BIN)/python -m pytest -m slow --timeout 3600

bench: $(READY) ## Engine speed beside SimPy and a C++ loop, a minute
	$(BIN)/python bench/engines.py

simgrid: $(DEV) ## Times against SimGrid, where Debian's python3-simgrid is installed
	$(BIN)/python -m pytest -m simgrid -rs tests/simgrid

system: ## Debian's packages that the browser tests use; without root or apt they are named, and those tests skip
	@if [ -x /usr/bin/chromium ] && ls /usr/share/fonts/truetype/nanum/*.ttf >/dev/null 2>&1; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-nanum; \
	else echo "browser tests will skip: install the packages chromium and fonts-nanum"; fi

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "ringscope needs Python 3.11 or newer; set PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv && $(PYTHON) -m venv $(VENV); \
	  else echo "install the package python3-venv, then run make again"; exit 1; fi; }

$(READY): pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	$(BIN)/python -m sim.compiled
	@touch $@

$(DEV): pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m sim.compiled
	@touch $(READY) $@

clean: ## Remove the environment and caches
	rm -rf $(VENV) build out *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.PHONY: help app demo test fuzz bench simgrid system clean
