# make gate   measure three reference models in two minutes, compare them with recorded baselines, print the report
# make fault  plant a graph break into a copy of examples/custom-model and see it caught: exit 10 in a minute or two
# make test   run the whole test suite; ROOM=decide: what a change of gate/decide needs, in under a minute
# make mutants ROOM=decide   change gate/decide in forty small ways, and list the changes that no test notices
# make test-torch TORCH=2.15.0   run the tests that touch torch with another release, in .venv-torch-2.15.0
# Variables: ROOM=check COUNT=100 SEED=2 PYTHON=python3.12 VENV=/tmp/venv DEVICE=cuda SELECT=tag:pr OUT=out ARGS="--trials 3"
PYTHON ?= python3
VENV ?= .venv
DEVICE ?=
SELECT ?= tag:quick
OUT ?= out
ARGS ?=
ROOM ?=
COUNT ?= 40
SEED ?= 1
BIN = $(VENV)/bin
workflows = $(wildcard .github/workflows/*.yml examples/workflows/*.yml)

options = --fail-on regression --out "$(OUT)" \
	$(if $(DEVICE),--device "$(DEVICE)") $(if $(SELECT),--select "$(SELECT)")

.PHONY: gate fault test test-torch mutants lint lint-types lint-rest install install-test clean
.DEFAULT_GOAL := gate

gate: install
	@code=0; $(BIN)/python -m gate check $(options) $(ARGS) || code=$$?; \
	printf '\nSee it catch something: make fault\n'; exit $$code

fault: install
	@$(BIN)/python tools/plant_fault.py

test: install-test
	@$(BIN)/python tools/run_tests.py $(if $(ROOM),--room="$(ROOM)") $(ARGS)

mutants: install-test
	@$(BIN)/python tools/play_mutants.py $(ROOM) --count "$(COUNT)" --seed "$(SEED)" $(ARGS)

# What reads torch's own modules, compiles, or looks at what was compiled.
torch_tests = tests/unit/measure tests/unit/models tests/unit/suite tests/integration/measure \
	tests/integration/models

test-torch:
	@$(PYTHON) tools/bootstrap.py ".venv-torch-$(TORCH)" models,test "$(TORCH)"
	@".venv-torch-$(TORCH)/bin/python" -m pytest -n auto --dist=loadfile -m "not alone" $(torch_tests) $(ARGS)

# On two cores: mypy takes as long as all the rest.
lint: install-test
	@$(MAKE) --no-print-directory --jobs=2 lint-types lint-rest

lint-types:
	$(BIN)/mypy

lint-rest:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python tools/generate_docs.py --check
	$(BIN)/python tools/build_site.py build/site
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
