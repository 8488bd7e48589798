# make run    set everything up and show a first result
# make test   prove that everything works
# make bench  measure speed and memory, against ns-3 where it can be installed
# make parity compare the simulator's TCP with the kernel's; ARGS="--cell cubic" or --help
# make fuzz   compare them on random experiments; ARGS="--count 1000 --seed 7" or --help;
#             the simulator alone, with the whole schema: ARGS="--sim --count 100000 --seed 1";
#             the reader of experiments, with mutated texts: ARGS="--reader --count 1000000"
# make docs   make a site of README and docs/, with the gallery's charts, in target/site
# make fmt    format all sources and write generated files anew

VENV := .venv
BIN := $(VENV)/bin
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml -o -path 'crates/linux/kernel/*' -type f) Cargo.toml Cargo.lock pyproject.toml

.PHONY: run test bench parity fuzz docs fmt clean

run: $(VENV)/installed
	@echo "== tcplab run examples/first.toml"
	@$(BIN)/tcplab run examples/first.toml
	@echo; echo "The command is $(BIN)/tcplab; '. $(BIN)/activate' lets you leave out the path."

test: $(VENV)/tools
	@scripts/test

bench: $(VENV)/installed
	@python3 benches/bench.py
	@echo; echo "== the Linux backend"
	@$(BIN)/python benches/linux.py
	@$(BIN)/python benches/sweeps.py
	@echo; echo "== captures"
	@$(BIN)/python benches/captures.py

parity: $(VENV)/installed
	@PYTHONPATH=tests $(BIN)/python -m parity $(ARGS)

fuzz: $(VENV)/installed
	@PYTHONPATH=tests $(BIN)/python -m fuzz $(ARGS)

docs: $(VENV)/installed $(VENV)/docs
	@scripts/step "making the site" scripts/site
	@echo "open target/site/index.html"

fmt: $(VENV)/installed
	cargo fmt
	$(BIN)/python scripts/columns.py
	$(BIN)/python scripts/generate.py
	$(BIN)/python scripts/third_party.py
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

clean:
	rm -rf target $(VENV) results

# The package, built and installed in place, with the bytecode that an installed package has; again
# whenever the Rust side has changed.
$(VENV)/installed: $(RUST) | $(VENV)/tools
	@scripts/step "fetching crates" cargo fetch --quiet --locked
	@scripts/step "building tcplab" $(BIN)/maturin develop --release --quiet
	@$(BIN)/python -m compileall -q python
	@touch $@

$(VENV)/docs: pyproject.toml | $(VENV)/tools
	@scripts/step "installing what makes the site" $(BIN)/pip install --quiet --disable-pip-version-check --group docs
	@touch $@

$(VENV)/tools: scripts/needs
	@scripts/needs
	@scripts/step "creating $(VENV)" python3 -m venv $(VENV)
	@scripts/step "installing tools into $(VENV)" $(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip 'maturin>=1.12,<2'
	@touch $@
