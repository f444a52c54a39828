# make gate   measure this machine's smoke selection, judge it, print the report
# make test   run the whole test suite
# Variables: PYTHON=python3.12 DEVICE=cuda SELECT=tag:pr OUT=out ARGS="--trials 3"
PYTHON ?= python3
VENV ?= .venv
DEVICE ?=
SELECT ?=
OUT ?= out
ARGS ?=
BIN = $(VENV)/bin
workflows = $(wildcard .github/workflows/*.yml examples/workflows/*.yml)

options = --fail-on regression --out "$(OUT)" \
	$(if $(DEVICE),--device "$(DEVICE)") $(if $(SELECT),--select "$(SELECT)")

.PHONY: gate test lint lint-types lint-rest install install-test clean
.DEFAULT_GOAL := gate

gate: install
	@$(BIN)/python -m gate check $(options) $(ARGS)

test: install-test
	@$(BIN)/python tools/run_tests.py $(ARGS)

# On two cores: mypy takes as long as all the rest.
lint: install-test
	@$(MAKE) --no-print-directory --jobs=2 lint-types lint-rest

lint-types:
	$(BIN)/mypy

lint-rest:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m gate.schema --check
	$(BIN)/python tools/generate_docs.py --check
	$(BIN)/zizmor --quiet --offline --persona=pedantic --no-progress action.yml $(workflows)
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows $(workflows)
	$(BIN)/check-jsonschema --quiet --builtin-schema custom.github-workflows-require-timeout $(workflows)
	@$(BIN)/python tools/lint_workflows.py "$(VENV)" action.yml $(workflows)

install:
	@$(PYTHON) tools/bootstrap.py "$(VENV)" models

install-test:
	@$(PYTHON) tools/bootstrap.py "$(VENV)" models,test

clean:
	rm -rf "$(VENV)" "$(OUT)"
