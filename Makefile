# make demo   set up, train three policies on CartPole-v1 and draw their learning curve
# make test   set up and run ruff, mypy and the tests
# make nightly  20,000 calls with hostile arguments, kills, damaged journals and the mutants, some minutes
# make mutants  mutations of the numerical code, each of which a test must notice: a few minutes
# make soak   kills, hostile calls, damaged journals, dead workers, full disks: about four minutes; see docs/reliability.md
# make bench  set up and run the benchmarks
# make docs   set up and build the site, dist/site/index.html
# make wheel  build the wheels of gibo and gibo-studies, and try them in a fresh environment
PYTHON ?= python3
BINS := venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .$(BINS)

# A BLAS with many threads is slower on these small matrices.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test nightly mutants soak bench docs wheel clean

demo: .venv/installed-demo
	$(BIN)/gibo train CartPole-v1 --trials 3 --budget 100 --out demo
	$(BIN)/gibo evaluate demo
	$(BIN)/gibo plot demo

# The tests start hundreds of Python processes; without bytecode each of them would compile the package again.
test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -n 2 --dist worksteal

nightly: mutants
	GIBO_HOSTILE_CALLS=20000 $(BIN)/pytest tests/hostile
	$(BIN)/python tests/soak/soak.py --share 0.2 --only journals kills

mutants: .venv/installed-dev
	$(BIN)/python tests/mutants/mutants.py

# A part of it: make soak SOAK="--share 0.1" or SOAK="--only kills disks".
soak: .venv/installed-dev
	$(BIN)/python tests/soak/soak.py $(SOAK)

bench: .venv/installed-dev
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/parallel.py
	$(BIN)/python benchmarks/policies.py
	$(BIN)/python benchmarks/asking.py
	$(BIN)/python benchmarks/history.py
	$(BIN)/python benchmarks/walks.py

docs: .venv/installed-docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs dist/site
	@echo "dist/site/index.html"

# Each distribution is tried in a fresh environment and in an empty folder, so that nothing of the clone is found.
wheel:
	rm -rf dist
	$(PYTHON) -m venv dist/venv
	dist/$(BINS)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist . ./studies
	dist/$(BINS)/python -m pip install --quiet --disable-pip-version-check dist/gibo-*.whl
	dist/$(BINS)/python benchmarks/wheel.py readme
	dist/$(BINS)/python -m pip install --quiet --disable-pip-version-check "$$(echo dist/gibo-*.whl)[gym]"
	dist/$(BINS)/python benchmarks/wheel.py train
	dist/$(BINS)/python -m pip install --quiet --disable-pip-version-check dist/gibo_studies-*.whl
	dist/$(BINS)/python benchmarks/wheel.py reproduce
	rm -rf dist/venv
	@ls -l dist

.venv/installed-%: pyproject.toml studies/pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "gibo needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]' $(if $(filter dev,$*),--editable studies)
	@touch $@

clean:
	rm -rf .venv demo dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
