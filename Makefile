# The work on a checkout. It needs only Python 3.11 or newer as python3: each target first makes .venv from the
# committed lock if it is missing or older than the lock. ARGS="..." goes to the command that a target runs;
# PYTHON=python3.12 chooses another Python for a new .venv.

SHELL := bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
TYPED := $(VENV)/typed/sqsqlite

# The tests start hundreds of Pythons. Without a cache of compiled files, each of them would compile the package again.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED := $(INSTALL) --require-hashes
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-annotate --no-header
COMPILE := $(LOCK) pyproject.toml

.PHONY: help setup hooks quick run test test-slow test-all lint types migration-check wheel lock contract conformance bench clean

help: ## Print the targets
	@echo 'make TARGET [ARGS="..."]; each sets up what it needs in $(VENV).'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) hooks ## Make .venv from the lock, with the project installed in it, and install the commit hook

# Only at the top of a checkout: an archive unpacked inside another repository must not change that one. Existing hooks
# stay: core.hooksPath would switch off those in .git/hooks.
hooks:
	@if [ -n "$$(git rev-parse --show-prefix 2>/dev/null || echo none)" ]; then exit 0; fi; \
	path=$$(git config core.hooksPath); own=$$(git rev-parse --git-common-dir)/hooks; \
	if [ "$$path" = .githooks ]; then :; \
	elif [ -n "$$path" ]; then echo "core.hooksPath is $$path: .githooks/commit-msg is not installed"; \
	elif ls "$$own" 2>/dev/null | grep -qv '\.sample$$'; then echo "$$own has hooks: .githooks/commit-msg is not installed"; \
	else git config core.hooksPath .githooks && echo 'Commit subjects are checked by .githooks/commit-msg'; fi

# PySpark ships only as a source archive, so it has its own lock, and is built with the setuptools of dev.lock.
# If Python was upgraded or removed, .venv cannot start, and is made again.
$(READY): requirements/dev.lock requirements/spark.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Python 3.11 or newer is needed as $(PYTHON): apt-get install python3, or PYTHON=...' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' \
		|| { echo 'Python has no venv module: apt-get install python3-venv' >&2; exit 1; }
	@echo 'Setting up $(VENV) from requirements/dev.lock'
	@$(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| $(PYTHON) -m venv --clear $(VENV)
	@$(LOCKED) --only-binary :all: -r requirements/dev.lock
	@$(LOCKED) --no-build-isolation -r requirements/spark.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

run: $(READY) ## Run the main job, sqsqlite demo
	@echo 'Running sqsqlite demo'
	@$(BIN)/sqsqlite demo $(ARGS)

# For each change: types from mypy's cache, and the tests that fail first if something is broken.
quick: $(READY) ## Check style, types and structure, and run a sample of the tests (under a minute on two cores)
	@$(MAKE) lint types ARGS=
	@echo 'Running the unit tests, the structure tests and a sample of behaviour'
	@$(PYTEST) -m 'not slow' -n 2 --dist worksteal -q tests/unit tests/packaging/test_structure.py tests/plans \
		tests/behaviour/test_send.py tests/behaviour/test_receive.py tests/behaviour/test_receipts.py $(ARGS)

# The run has no time limit: it takes as long as the machine needs, and each test has its own limit against hangs.
test: $(READY) ## Run the tests, without the slow ones (4 minutes of CPU, on two cores at once)
	@echo 'Running the tests that are not slow, two at a time'
	@$(PYTEST) -m 'not slow' -n 2 --dist worksteal $(ARGS)

# Two at a time, because most of them wait for other programs. tests/conftest.py names those that must run alone.
test-slow: $(READY) ## Run the slow tests: storms, crashes, large files, Spark (half an hour)
	@echo 'Running the slow tests, two at a time'
	@$(PYTEST) -m slow -n 2 --dist loadscope $(ARGS)

test-all: ## Run every test
	@$(MAKE) test
	@$(MAKE) test-slow

lint: $(READY) ## Check style and format (ruff)
	@echo 'Checking style and format'
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

# mypy does not follow the mapping of cli/ and migrations/ in pyproject.toml, so it gets the package as a user
# does: a folder of links. It reports cli/x.py as sqsqlite/cli/x.py; sed changes that back.
types: $(READY) ## Check the types (mypy --strict)
	@echo 'Checking the types'
	@rm -rf $(TYPED) && mkdir -p $(TYPED)
	@ln -s $(CURDIR)/sqsqlite/* $(CURDIR)/cli $(CURDIR)/migrations $(TYPED)
	@set -o pipefail; cd $(TYPED)/.. && $(CURDIR)/$(BIN)/mypy --strict --config-file $(CURDIR)/pyproject.toml \
		--cache-dir $(CURDIR)/.mypy_cache -p sqsqlite $(ARGS) | sed -E 's#^sqsqlite/(cli|migrations)/#\1/#'

migration-check: $(READY) ## Prove that the migrations give the schema of a new file
	@echo 'Comparing the migrations with the schema'
	@$(BIN)/python -m pytest tests/migrations $(ARGS)

# --no-index makes pip refuse the wheel if runtime.lock lacks anything that the wheel asks for.
wheel: $(READY) ## Build the wheel, and use it from an empty environment
	@echo 'Building the wheel and using it away from the checkout'
	@rm -rf build dist/sqsqlite-*.whl
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@away=$$(mktemp -d) && trap 'rm -rf "$$away"' EXIT && $(PYTHON) -m venv "$$away/venv" \
		&& pip="$$away/venv/bin/python -m pip --disable-pip-version-check" \
		&& $$pip install --quiet --only-binary :all: --require-hashes -r requirements/runtime.lock \
		&& $$pip install --quiet --no-index "$$(echo dist/sqsqlite-*.whl)[serve]" \
		&& cp tests/packaging/installed_wheel.py "$$away" && cd "$$away" && venv/bin/python -I installed_wheel.py

lock: $(READY) ## Write requirements/*.lock again from pyproject.toml (ARGS=--upgrade for new versions)
	@echo 'Writing requirements/*.lock'
	@$(COMPILE) --extra boto3 --extra serve --group build --group lint --group lock --group test $(ARGS) \
		--output-file requirements/dev.lock
	@$(COMPILE) -c requirements/dev.lock --extra serve $(ARGS) --output-file requirements/runtime.lock
	@$(COMPILE) -c requirements/dev.lock --extra spark $(ARGS) --output-file requirements/spark.lock
	@$(COMPILE) -c requirements/dev.lock --group bench $(ARGS) --output-file requirements/bench.lock
	@$(COMPILE) -c requirements/dev.lock --group bench-honker $(ARGS) --output-file requirements/bench-honker.lock
	@for wanted in requirements/{clients,servers}/*.in; do $(LOCK) $$wanted $(ARGS) --output-file $${wanted%.in}.lock; done

contract: $(READY) ## Write docs/contract.md from the rules in tests/contract and the tests that prove them
	@echo 'Writing docs/contract.md'
	@$(BIN)/python -m tests.contract.page

conformance: $(READY) ## Run the clients against sqsqlite serve, and write docs/conformance.md
	@echo 'Running the clients, and writing docs/conformance.md'
	@$(BIN)/python -m pytest tests/clients -o junit_family=xunit1 --junitxml $(VENV)/clients.xml $(ARGS)
	@$(BIN)/python -m tests.clients.page $(VENV)/clients.xml

bench: $(READY) ## Run the benchmarks of SQSQLite and its peers
	@echo 'Running the benchmarks'
	@$(LOCKED) -r requirements/bench.lock
	@$(LOCKED) -r requirements/bench-honker.lock || echo 'honker needs Rust to be built here, so its rows are left out' >&2
	@$(BIN)/python benchmarks/run.py $(ARGS)

clean: ## Remove all files that the targets made
	@echo 'Removing $(VENV), builds and caches'
	@rm -rf $(VENV) build dist docs/contract.md *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
