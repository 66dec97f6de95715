# `make test` proves everything, `make demo` shows it. Both need git, make and Python 3.11 or newer, nothing else.

PYTHON ?= python3
BIN := .venv/bin
# Prints how long a stage took.
STAGE := scripts/stage.sh
# Give pytest more with ARGS, as in: make unit ARGS="-k claims -x"
ARGS ?=
# A run of all tests must prove every promise; one that ARGS narrows down need not.
PROMISES := $(if $(ARGS),,--promises)
# What `make quick` runs.
QUICK := not (postgres or client or sandbox or slow)
# Workers beyond eight cost more to start than they save.
PARALLEL ?= -n auto --maxprocesses 8 --dist loadgroup
# `make test` runs the first three, which are quick.
ALL_CLIENTS := claude codex gemini qwen copilot opencode

export PYTHON

.PHONY: help test check quick unit pytest soak test-clients coverage format demo bench setup pins clean
.PHONY: .run .dev .bench .clients .browser
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## static checks, then all tests
	@$(STAGE) "make test" $(MAKE) --no-print-directory check pytest

check: .dev ## static checks only: format, lint, types, layers, generated pages
	@$(STAGE) "check: format" $(BIN)/ruff format --check --quiet .
	@$(STAGE) "check: lint" $(BIN)/ruff check --quiet .
	@$(STAGE) "check: types" $(BIN)/basedpyright --level error
	@$(STAGE) "check: layers" $(BIN)/lint-imports --no-logo --no-cache
	@$(STAGE) "check: module map" $(BIN)/python scripts/module_map.py --check
	@$(STAGE) "check: reference" $(BIN)/python -m scripts.references --check
	@$(STAGE) "check: JSON Schema" $(BIN)/python -m scripts.json_schemas --check
	@$(STAGE) "check: worker protocol" $(BIN)/python scripts/worker_protocol.py --check
	@$(STAGE) "check: client tools" $(BIN)/python scripts/client_tools.py --check
	@$(STAGE) "check: promises" $(BIN)/python scripts/promises.py --check

pytest: .dev .clients .browser ## all tests
	@$(STAGE) "tests" $(BIN)/python -m pytest $(PARALLEL) $(PROMISES) $(ARGS)

soak: .dev .browser ## the tests of races, kills and crashes, with many more rounds than `make test` has time for
	@LANDLANE_RACES=10000 LANDLANE_TASK_ROUNDS=20 LANDLANE_HOOK_CALLS=1000 LANDLANE_COMMIT_ROUNDS=4 LANDLANE_TEST_STARTS=1 LANDLANE_STOPS=12 LANDLANE_ESCAPES=all \
	LANDLANE_FAULT_SECONDS=60 LANDLANE_FAULT_TASKS=500 LANDLANE_LANDING_KILLS=100 LANDLANE_RUN_KILLS=600 \
	LANDLANE_SYSTEM_CALL_KILLS=20 LANDLANE_SIMULATIONS=10 LANDLANE_EXAMPLES=100 LANDLANE_EVERY_DAMAGE=1 LANDLANE_EVERY_PAGE=1 \
	$(BIN)/python -m pytest --timeout=3600 -m "simulation or soak" $(ARGS)

test-clients: .dev ## the tests with real coding clients, all six of them
	@scripts/clients.sh $(ALL_CLIENTS)
	@LANDLANE_TEST_CLIENTS="$(ALL_CLIENTS)" $(BIN)/python -m pytest -m client $(PARALLEL) $(ARGS)

quick: .dev ## the tests that need no server, client or sandbox, without the slow ones
	@$(STAGE) "quick tests" $(BIN)/python -m pytest $(PARALLEL) -m "$(QUICK)" $(ARGS)

unit: .dev ## unit tests only: no files, no processes
	@$(BIN)/python -m pytest -m unit $(ARGS)

coverage: .dev .clients .browser ## all tests, and which branches they never took
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(PARALLEL) $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

format: .dev ## format the code, update the generated pages
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .
	@$(BIN)/python scripts/module_map.py
	@$(BIN)/python -m scripts.references
	@$(BIN)/python -m scripts.json_schemas
	@$(BIN)/python scripts/worker_protocol.py
	@$(BIN)/python scripts/client_tools.py
	@$(BIN)/python scripts/promises.py

demo: .run ## the story on a scratch repository
	@$(BIN)/landlane demo

bench: .bench ## the measured comparison
	@$(BIN)/python -m bench

setup: ## make .venv ready, and try again what could not be had before
	@scripts/setup.sh dev --again
	@scripts/clients.sh --again
	@scripts/browser.sh --again

pins: ## choose and pin the newest requirements
	@scripts/pin.sh

clean: ## remove .venv, .clients and what the tools left behind
	@rm -rf .venv .clients .tools .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov build dist
	@find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

.run:
	@scripts/setup.sh run

.dev:
	@$(STAGE) "setup" scripts/setup.sh dev

.bench:
	@scripts/setup.sh bench

.clients:
	@$(STAGE) "setup: coding clients" scripts/clients.sh

.browser:
	@$(STAGE) "setup: browser" scripts/browser.sh
