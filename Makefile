# make run    build and start the gateway with its web UI, on its embedded database: to try it; the
#             program is not optimised (make dist)
# make demo   the same with a mock provider behind it, a user, a key, and commands to paste
# make test   format, lints and every test
# make test-lint, test-code, test-ui   only this part of it
# make bench  compare the gateway with nginx and a bare Pingora
# make bench-check   instructions per request; fails if one is 3 % above the recorded figure;
#                    UPDATE=1 records new figures, PROFILE=… selects the build profile
# make bench-stages  the instructions of each stage of a request, and how many of them are the
#                    allocator's and of copying
# make bench-peers   nginx, a bare Pingora, the gateway, and the gateways that PEER_… variables name,
#                    in turns (bench/README.md)
# make bench-convert   only conversion: MB/s and ns per stream event for every pair of formats
# make bench-admission   only the thirteen limit checks: nanoseconds to admit and settle a request,
#                        in the process and with Redis (needs redis-server)
# make bench-nodes   one node with and without Redis, and two nodes
# make bench-writer   records a second that the ledger's writer brings into a new PostgreSQL
# make bench-admin   time of the administration's queries over a year of use
# make soak   run a mixed load for MINUTES (30) and check that memory, files and threads do not grow
# make chaos  three nodes under load while their parts break in a random order, for MINUTES (10);
#             SEED=… repeats a run; a short form is part of `make test`
# make fuzz   the fuzz targets, FUZZ_SECONDS (30) each
# make schemathesis   test a running gateway against its own OpenAPI document
# make dist   a release in dist/: archive, Debian package, SBOMs, checksums; MINIMAL=1 omits
#             `tollgate mock`
# make dist-twice   build this commit's release twice and compare every byte
# make test-dist   install, upgrade, remove and purge the package of dist/ in a separate Debian 12
# make image  the container image of dist/ as an OCI archive; needs no container engine or registry
# make test-image   boot that archive to its first request: read-only, as its user, in a namespace
# make test-deploy  check compose file, kustomizations, Helm chart and workflows with their tools
# make test-compose  start the services of compose.yaml as processes, without a container engine
# make test-valkey  the tests that use Redis, against Valkey
# make lint   only format and lints
# make pictures   the architecture picture and the badges of the README, from their sources
# make hooks  run scripts/pre-commit.sh before each commit
#
# Each target first installs what is missing, and prints that (scripts/setup.sh).

.DEFAULT_GOAL := run
.PHONY: run demo test test-lint test-code test-ui bench bench-check bench-stages bench-peers bench-admin bench-writer bench-convert bench-admission \
	bench-nodes soak chaos fuzz schemathesis dist dist-twice test-dist image test-image test-deploy \
	test-compose test-valkey lint fmt pictures hooks

# Cargo's folder. `cargo run` does not know `--workspace`, without which it would compile the
# dependencies a second time.
BUILT = $${CARGO_TARGET_DIR:-target}
# In the profile of the tests: `make test` compiles no dependency again, and a first start waits half
# as long as for an optimised program.
QUICK = cargo build --locked --workspace --bin tollgate
# The gateway as a release has it, with its code laid out.
LAID_OUT = $(BUILT)/dist/laid-out/tollgate
LAY_OUT = mkdir -p $(dir $(LAID_OUT)) && scripts/layout.sh $(BUILT)/dist/tollgate $(LAID_OUT)

run:
	@scripts/setup.sh run
	$(QUICK)
	@exec $(BUILT)/debug/tollgate serve

demo:
	@scripts/setup.sh demo
	$(QUICK)
	@scripts/demo.sh

test:
	@scripts/setup.sh test-system
	@scripts/test.sh

test-lint test-code test-ui: test-%:
	@scripts/setup.sh test-system
	@PART=$* scripts/test.sh

bench:
	@scripts/setup.sh bench
	cargo build --profile dist --locked --workspace
	$(LAY_OUT)
	$(BUILT)/dist/tollgate-bench --tollgate $(LAID_OUT) --out target/bench.md $(ARGS)

# The profile of the tests, whose dependencies are built already, with our own code optimised. Each
# profile has separate figures.
bench-check: PROFILE ?= dev
bench-check: export CARGO_PROFILE_DEV_OPT_LEVEL = 3
bench-check:
	@scripts/setup.sh bench-check
	cargo build --profile $(PROFILE) --locked --workspace --bin tollgate --bin instructions
	$(BUILT)/$(PROFILE:dev=debug)/instructions \
		--profile $(PROFILE) $(if $(filter 1,$(UPDATE)),--update) $(ARGS)

bench-stages:
	@scripts/setup.sh bench-check
	cargo build --profile dist --locked --workspace --features tollgate/stages --bin tollgate --bin stages
	$(BUILT)/dist/stages $(ARGS)

bench-peers:
	@scripts/setup.sh bench
	cargo build --profile dist --locked --workspace --bin tollgate --bin floor --bin peers
	$(LAY_OUT)
	$(BUILT)/dist/peers --tollgate $(LAID_OUT) $(ARGS)

bench-convert:
	@scripts/setup.sh build
	cargo run --profile dist --locked -p tollgate-bench --bin convert

bench-admin:
	@scripts/setup.sh test
	cargo build --profile dist --locked --workspace --bin tollgate --bin adload
	$(BUILT)/dist/adload $(ARGS)

bench-writer:
	@scripts/setup.sh test
	cargo build --profile dist --locked --workspace --bin commits
	$(BUILT)/dist/commits \
		--private-postgres --records 400000 --keys 200 $(ARGS)

bench-admission:
	@scripts/setup.sh build
	cargo run --profile dist --locked -p tollgate-bench --bin admission

bench-nodes:
	@scripts/setup.sh test
	cargo build --profile dist --locked --workspace --bin tollgate --bin nodes
	$(BUILT)/dist/nodes $(ARGS)

soak: MINUTES ?= 30
soak:
	@scripts/setup.sh build
	cargo build --release --locked --workspace
	cargo run --release --locked -p tollgate-bench --bin soak -- --minutes $(MINUTES)

chaos: MINUTES ?= 10
chaos: export CHAOS_SECONDS = $(shell expr $(MINUTES) \* 60)
chaos: export CHAOS_SEED = $(SEED)
chaos:
	@scripts/setup.sh test
	cargo test --locked --test main nodes::chaos -- --nocapture

fuzz:
	@scripts/setup.sh fuzz
	@tests/fuzz/run.sh

schemathesis:
	@scripts/setup.sh test
	cargo build --locked
	@scripts/schemathesis.sh

dist:
	@scripts/setup.sh dist
	@scripts/dist.sh

dist-twice:
	@scripts/setup.sh dist
	@scripts/dist-twice.sh

test-dist: dist
	@scripts/setup.sh test-dist
	@scripts/test-dist.sh

test-valkey:
	@scripts/setup.sh test-valkey
	@scripts/test-valkey.sh

# Uses the release in dist/: run `make dist` first.
image:
	@scripts/setup.sh image
	@scripts/image.sh

test-image: image
	@scripts/setup.sh test-image
	@scripts/test-image.sh

test-deploy:
	@scripts/setup.sh test-deploy
	@scripts/test-deploy.sh

test-compose:
	@scripts/setup.sh test-compose
	@scripts/test-compose.sh

lint:
	@scripts/setup.sh build
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

fmt:
	cargo fmt --all

pictures:
	@python3 scripts/pictures.py

hooks:
	@ln -sfn "$$(pwd)/scripts/pre-commit.sh" "$$(git rev-parse --git-path hooks)/pre-commit"
	@echo "scripts/pre-commit.sh runs before each commit now; git commit --no-verify skips it"
