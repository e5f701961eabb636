# One command to try it, one to check everything. `make help` lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-dev
DEMO_STAMP := $(VENV)/.installed

.PHONY: help demo test torture quick lint types bench shape docs dist bundle clean

help: ## list what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(DEMO_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(DEMO_STAMP)

demo: $(DEMO_STAMP) ## index this repository's docs and run three searches
	@sh scripts/demo.sh $(BIN)/kb

test: $(STAMP) lint types ## lint, types and every test
	PYTHONWARNDEFAULTENCODING=1 $(BIN)/python -m pytest -n 2 --dist worksteal

quick: $(STAMP) ## the quick tests, which need neither the model nor a server
	$(BIN)/python -m pytest -n 2 --dist worksteal -x -m "not slow and not server and not model"

torture: $(STAMP) ## try to break every promise of docs/promises.md, whole: takes an hour
	$(BIN)/python -m tests.torture --write

lint: $(STAMP) ## ruff
	$(BIN)/ruff check src tests benchmarks scripts training
	$(BIN)/ruff format --check src tests benchmarks scripts training

types: $(STAMP) ## mypy strict
	$(BIN)/mypy

bench: $(STAMP) ## speed and quality, as ratios measured side by side
	$(BIN)/python -m benchmarks

shape: $(STAMP) ## how much code there is, and how much of it one search runs
	$(BIN)/python scripts/shape.py

docs: $(STAMP) ## write the generated pages anew
	$(BIN)/python scripts/make_docs.py

dist: ## a wheel and an sdist, checked, and searched with in a clean environment
	@sh scripts/make_dist.sh $(PYTHON)

bundle: $(DEMO_STAMP) dist ## a bundle for Claude Desktop, dist/concord.mcpb
	$(BIN)/python scripts/make_bundle.py dist/*.whl dist/bundle
	npx --yes @anthropic-ai/mcpb validate dist/bundle/manifest.json
	npx --yes @anthropic-ai/mcpb pack dist/bundle dist/concord.mcpb

clean: ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis build dist
