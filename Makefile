# make demo   set up, train three policies on CartPole-v1 and draw their learning curve
# make test   set up and run ruff, mypy and the tests
# make bench  set up and run the benchmarks
PYTHON ?= python3
BIN := .venv/bin

# A BLAS with many threads is slower on these small matrices.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test bench clean

demo: .venv/installed-demo
	$(BIN)/gibo train CartPole-v1 --trials 3 --out demo
	$(BIN)/gibo evaluate demo
	$(BIN)/gibo plot demo

test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2

bench: .venv/installed-dev
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/parallel.py
	$(BIN)/python benchmarks/policies.py
	$(BIN)/python benchmarks/manual.py
	$(BIN)/python benchmarks/history.py

.venv/installed-%: pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "gibo needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

clean:
	rm -rf .venv demo .mypy_cache .pytest_cache .ruff_cache .hypothesis
