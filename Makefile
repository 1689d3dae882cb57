# Everything here needs git, make and Python 3.11 or 3.12, and sets up the rest in .venv.

SHELL := /bin/sh
BIN := .venv/bin
STAMP := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help demo tools test slow check format docs lock benchmark

help: ## show this list
	@awk -F ': .*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

demo: $(STAMP) ## read two small volumes on this machine: archive, models and campaigns repo come with it
	@$(BIN)/python -m tests.demo

tools: $(STAMP) ## get the programs that tests run against; TOOLS="etcd kueue" gets only these
	$(BIN)/python -m tests.tools $(TOOLS)

test: $(STAMP) ## run the tests, but for those that take long
	$(BIN)/pytest -n auto -m 'not slow'

slow: $(STAMP) ## run the tests that take long: whole volumes, kills at every write, the demo, browsers in every size
	$(BIN)/pytest -n auto -m slow

benchmark: $(STAMP) ## measure converter, wrapper, apply and status site beside what one would use instead; WRITE=--write writes docs/benchmarks.md
	$(BIN)/python -m benchmarks.converter $(WRITE)
	$(BIN)/python -m benchmarks.wrapper $(WRITE)
	$(BIN)/python -m benchmarks.apply $(WRITE)
	$(BIN)/python -m benchmarks.statuspage $(WRITE)

check: $(STAMP) ## check formatting, style, types, scripts, workflows and Dockerfiles
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/mypy benchmarks docs tests
	$(BIN)/shellcheck .ci/run action/*.sh
	$(BIN)/actionlint -shellcheck $(BIN)/shellcheck
	$(BIN)/zizmor --offline --quiet .github action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	@for file in $$(git ls-files -co --exclude-standard '*Dockerfile'); do \
		echo "$(BIN)/hadolint $$file"; $(BIN)/hadolint "$$file" || exit 1; \
	done

format: $(STAMP) ## format the code and repair what ruff can
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

docs: $(STAMP) ## write the generated parts of the documentation anew
	$(BIN)/python docs/tables.py
	$(BIN)/python docs/chart_values.py
	$(BIN)/python docs/action_inputs.py

lock: $(STAMP) ## resolve the newest versions of all dependencies into requirements/
	$(COMPILE) --output-file requirements/converter.lock
	$(COMPILE) --output-file requirements/dev.lock $(WRAPPER) --extra apply --extra local --group dev
	$(COMPILE) --output-file requirements/wrapper.lock $(WRAPPER) --constraints requirements/dev.lock
	$(COMPILE) --output-file requirements/statuspage.lock --extra statuspage --constraints requirements/dev.lock
	$(COMPILE) --output-file requirements/action.lock --extra plan --constraints requirements/dev.lock

COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command 'make lock'
WRAPPER := --extra wrapper --group opencv --no-emit-package opencv-python

# A virtual environment with exactly what the lock file names, made again when that changes. uv does in seconds what
# takes pip minutes, and comes out of the lock file itself. The lock file is whole, so nothing is resolved.
$(STAMP): requirements/dev.lock pyproject.toml
	@python=; for name in python3 python3.12 python3.11; do \
		if $$name -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null; then \
			python=$$name; break; \
		fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo 'make: no Python 3.11 or 3.12 with the venv module was found, and htrflow runs on no newer one — install one' \
			'(on Debian 12: apt install python3-venv)' >&2; \
		exit 1; \
	fi; \
	echo "Setting up .venv with $$($$python --version)"; \
	$$python -m venv --clear .venv
	@awk '/^uv==/ {on = 1} on {print} on && !/\\$$/ {exit}' requirements/dev.lock >.venv/uv.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r .venv/uv.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements/dev.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@
