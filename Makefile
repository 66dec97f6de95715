# `make test` proves everything, `make demo` shows it. Both need git, make and Python 3.11 or newer, nothing else.

PYTHON ?= python3
BIN := .venv/bin
# Give pytest more with ARGS, as in: make unit ARGS="-k claims -x"
ARGS ?=
# Workers beyond eight cost more to start than they save.
PARALLEL ?= -n auto --maxprocesses 8 --dist loadgroup

export PYTHON

.PHONY: help test check unit pytest coverage format demo bench setup pins clean
.PHONY: .run .dev .bench
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## static checks, then all tests
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory pytest

check: .dev ## static checks only: format, lint, types, layers, module map
	@echo "check: format"
	@$(BIN)/ruff format --check --quiet .
	@echo "check: lint"
	@$(BIN)/ruff check --quiet .
	@echo "check: types"
	@$(BIN)/basedpyright --level error
	@echo "check: layers"
	@report=$$($(BIN)/lint-imports --no-logo --no-cache) || { echo "$$report"; exit 1; }
	@echo "check: module map"
	@$(BIN)/python scripts/module_map.py --check
	@echo "check: reference"
	@$(BIN)/python scripts/references.py --check

pytest: .dev ## all tests
	@echo "test: all"
	@$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

unit: .dev ## the quick tests: no files, no processes
	@$(BIN)/python -m pytest tests/unit $(ARGS)

coverage: .dev ## all tests, and which branches they never took
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(PARALLEL) $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

format: .dev ## put code and module map in order
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .
	@$(BIN)/python scripts/module_map.py
	@$(BIN)/python scripts/references.py

demo: .run ## the story on a scratch repository
	@$(BIN)/interlock demo

bench: .bench ## the measured comparison
	@$(BIN)/python -m bench

setup: ## make .venv ready, and try again what could not be had before
	@scripts/setup.sh dev --again

pins: ## choose and pin the newest requirements
	@scripts/pin.sh

clean: ## remove .venv and what the tools left behind
	@rm -rf .venv .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov build dist
	@find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

.run:
	@scripts/setup.sh run

.dev:
	@scripts/setup.sh dev

.bench:
	@scripts/setup.sh bench
