# Each target makes its own virtual environment in .venv when there is none; Python >= 3.11, pip and make are enough.
# PYTHON=/path/to/python chooses the interpreter, ROW=name one row of the benchmark, PLOT=1 its plots, TARGETS=name what
# is fuzzed.

VENV := .venv
BIN := $(VENV)/bin
# Installed for users, and with the extra of each name: written anew when the dependencies change.
USE := $(VENV)/.installed
DEVELOP := $(VENV)/.installed-dev
DOCUMENT := $(VENV)/.installed-docs
PLOTTING := $(VENV)/.installed-plot
FUZZ := $(VENV)/.installed-fuzz
# Most tests wait for processes, so two share a processor well.
WORKERS := $(shell echo $$((2 * $$(nproc))))
TARGETS := duration size instant numbers words selector scalar document
SECONDS := 60

.PHONY: help demo shards test faults fuzz check bench docs reference clean

help:
	@echo "make demo    run the two-step pipeline of examples/ and tell its story"
	@echo "make shards  run the four analyses of examples/ that share a pool of two slots"
	@echo "make test    make check, then every test, with coverage"
	@echo "make faults  kill, interrupt and refuse at every system call of the fault tests; make test tries a sample"
	@echo "make fuzz    look for texts that are read wrongly (TARGETS=name for one, SECONDS=600 for each)"
	@echo "make check   linters, format, types, layers of imports"
	@echo "make bench   measure, and compare with the budgets (ROW=name for one row, PLOT=1 for the plots of the documentation)"
	@echo "make docs    build the site of the documentation into build/site"
	@echo "make reference  write the generated pages of docs/reference anew"
	@echo "make clean   remove everything that these targets have made"

$(USE): pyproject.toml .ci/venv
	@PYTHON="$(PYTHON)" sh .ci/venv $(VENV) .
	@touch $@

$(DEVELOP) $(DOCUMENT) $(PLOTTING) $(FUZZ): $(VENV)/.installed-%: pyproject.toml .ci/venv
	@PYTHON="$(PYTHON)" sh .ci/venv $(VENV) '.[$*]'
	@touch $(USE) $@

demo: $(USE)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/pipeline/run.sh

shards: $(USE)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/shards/run.sh

check: $(DEVELOP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The total of the coverage follows pytest's closing line;
# `.venv/bin/coverage report` has the lines that were missed.
test: check
	@status=0; $(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal --cov --cov-report= || status=$$?; \
	echo "coverage of the code that ran in the test process: $$($(BIN)/coverage report --format=total) %"; exit $$status

faults: $(DEVELOP)
	@JOBMAN_FAULTS=all $(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal tests/faults

fuzz: $(FUZZ)
	@for target in $(TARGETS); do echo "$$target:"; $(BIN)/python -m fuzz $$target $(SECONDS) || exit; done

ifdef PLOT
bench: $(PLOTTING)
	@$(BIN)/python -m bench --plot
else
bench: $(USE)
	@$(BIN)/python -m bench $(ROW)
endif

docs: $(DOCUMENT) reference
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "build/site/index.html"

reference: $(USE)
	@$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) build dist .coverage .coverage.* .mypy_cache .ruff_cache .hypothesis .import_linter_cache bench/results.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
