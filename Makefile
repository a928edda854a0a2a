# Everything starts here: `make help`. Needs make and any Python from 3.11 on with its venv module; the rest is installed
# into .venv. Variables can be set on the command line: `make test JOBS=4`, `make bench DATA=../data`.

VENV    ?= .venv
# Extras of pyproject.toml that the development environment holds.
EXTRAS  ?= build,dev,debug,docs,lsp,rdf,shell,spark,web
# The versions that it holds; with CONSTRAINTS= the latest that pyproject.toml allows.
CONSTRAINTS ?= constraints.txt
# Test processes; 0 runs the tests in this one. The Spark tests share one process, and one session.
JOBS    ?= 2
PYTEST  ?=
# LONG=1 runs the tests that take a minute each, too.
LONG    ?=
# QUICK=1 makes `make torture` take five minutes, and `make papers` fifteen; SEED=N gives the first seed of the former,
# ONLY="elastic.table3 marking" names tables, figures or papers for the latter.
QUICK   ?=
ONLY    ?=
SEED    ?=
# For `make corpus`: a folder with checkouts OWNER+NAME of public repositories, and Soufflé, without which only ours runs.
CLONES  ?=
SOUFFLE ?=
# What `make check` tests: the language and the pages, and that a handful of programs have the facts that they should.
QUICKEST := tests/syntax tests/diagnostics tests/editing tests/planning tests/test_circles.py tests/test_names.py tests/docs/test_pages.py tests/docs/test_site.py \
	tests/docs/test_walks.py tests/engine/test_programs.py::test_the_command_run_writes_the_expected_facts
# Folder of benchmark data; without it the benchmarks generate theirs.
DATA    ?= $(ELASTALOG_DATA)

BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
INSTALL  = $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$(EXTRAS)]"
WORKERS := $(if $(filter-out 0,$(JOBS)),-n $(JOBS) --dist loadgroup,)

.DEFAULT_GOAL := help
.PHONY: help setup demo workbench test check docs torture corpus bench papers wheel format clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv, install the project into it, compile its operators

demo: $(READY) ## a short tour on local Spark; under two minutes
	@$(BIN)/python scripts/demo.py

workbench: $(READY) ## the workbench on an example, in your browser
	@$(BIN)/elastalog workbench --demo --open

test: $(READY) ## run the tests, but for a few that take a minute each (LONG=1 runs these too)
	$(BIN)/python -m elastalog.backends.kernel.compile.warm
	$(BIN)/python -m pytest $(WORKERS) $(if $(LONG),,-m "not long") $(PYTEST)

check: $(READY) ## format, lint, types, layers, names, the tests of the language and of the pages, a few programs: under two minutes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/dependencies.py check
	$(BIN)/python scripts/names.py
	$(BIN)/python -m pytest $(WORKERS) -q -m "not slow and not spark" $(or $(PYTEST),$(QUICKEST))

docs: $(READY) ## the documentation as a site, in build/site (`make check` builds it too)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

torture: $(READY) ## attack every promise from seeds for an hour (QUICK=1: five minutes); SEED=N repeats
	$(BIN)/python -m tests.torture --seconds $(if $(QUICK),300,3600) $(if $(SEED),--seed $(SEED),)

corpus: $(READY) ## programs of others beside Soufflé: CLONES=FOLDER of checkouts, SOUFFLE=BINARY; goes on where it ended
	$(BIN)/python -m tests.corpus $(CLONES) $(if $(SOUFFLE),--souffle $(SOUFFLE))

bench: $(READY) ## measure speed and memory; prints a table, writes benchmarks/results/ and benchmarks/plots/
	$(BIN)/python -m benchmarks.parse_speed
	$(BIN)/python -m benchmarks.batch $(if $(DATA),--data $(DATA),)

papers: $(READY) ## the papers' tables and figures beside ours, into docs/papers/: hours (QUICK=1: 15 minutes); ONLY=elastic.table3
	$(BIN)/python -m benchmarks.papers $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(DATA),--data $(DATA))

wheel: $(READY) ## build the wheel into dist/, with operators compiled for all families of processors and devices, and its bill of materials
	rm -rf src/elastalog/jit/built
	$(BIN)/python -m elastalog.backends.kernel.compile.warm src/elastalog/jit/built x86-64-v3 aarch64
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target build/nvrtc --upgrade 'nvidia-cuda-nvrtc-cu12>=12.6'
	PYTHONPATH=build/nvrtc $(BIN)/python -m elastalog.backends.gpu.driver src/elastalog/jit/built
	$(BIN)/python -m pip wheel --disable-pip-version-check --no-deps --wheel-dir dist .
	$(BIN)/python scripts/dependencies.py sbom dist/elastalog-*.whl

format: $(READY) ## rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove .venv, caches and build results
	rm -rf $(VENV) build dist src/elastalog/jit/built .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is newer than pyproject.toml when the environment holds what pyproject.toml asks for.
$(READY): pyproject.toml $(CONSTRAINTS) scripts/find_python.sh scripts/java.sh
	@test -x $(BIN)/python || { python=$$(sh scripts/find_python.sh) && echo "creating $(VENV) with $$python" && $$python -m venv $(VENV); }
	$(if $(CONSTRAINTS),$(INSTALL) --constraint $(CONSTRAINTS) || { echo "some versions in $(CONSTRAINTS) are not available here: installing the latest compatible ones"; $(INSTALL); },$(INSTALL))
	@sh scripts/java.sh $(BIN)/python
	$(BIN)/python -m elastalog.backends.kernel.compile.warm
	@touch $@
