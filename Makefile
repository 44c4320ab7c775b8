# The two commands of a fresh machine are `make demo` and `make test`; each does all of its own set-up.

CARGO ?= cargo
export CARGO_TERM_COLOR ?= auto

.PHONY: help demo test setup guests build lint docs unit guest-tests soak security-table bench load clean

help: ## Shows what there is to make
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup: ## Finds or installs what compiling guests takes, and compiles the built-in one
	@scripts/setup

guests: setup ## Compiles every guest to guests/dist/NAME.wasm
	@scripts/guests

build: setup ## Builds the server
	$(CARGO) build --locked

demo: build ## Runs an order workflow in the sandbox with a native worker beside it
	@scripts/guests hello orders
	@scripts/demo

test: guests lint unit guest-tests docs ## Runs everything that CI runs

lint: guests
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	@scripts/check-docs

unit: guests
	$(CARGO) test --locked

guest-tests: guests
	cd guests && env -u CARGO_TARGET_DIR $(CARGO) fmt --check
	cd guests && env -u CARGO_TARGET_DIR $(CARGO) test --locked --quiet
	@scripts/guests --test

docs: guests
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --lib

soak: guests ## Runs the fault tests at their stated counts and times
	SANDKEEP_SOAK=1 $(CARGO) test --locked --test it -- --nocapture

security-table: guests ## Runs the hostile suite and writes docs/security-tests.md
	@scripts/security-table $(if $(RELEASE),--release)

load: guests ## Measures the server on the loads of docs/benchmarks.md
	$(CARGO) build --locked --release
	$(CARGO) run --locked --release --example load -- --binary target/release/sandkeep

bench: guests ## Measures parts alone
	$(CARGO) bench --locked --bench parts

clean: ## Removes what was built
	rm -rf target guests/target guests/dist
