# Correx. `make help` lists the targets; scripts/ fetches what they need.

GO ?= go
TAGS := sqlite_fts5
# Without the version control's stamp, which fails in a checkout of another user's.
BUILD := -tags $(TAGS) -buildvcs=false
TEST := $(GO) test -tags $(TAGS) -p 2

# SQLite is C.
export CGO_ENABLED := 1

# Tests that draw at random say so, and draw again from the same seed.
CORREX_SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
export CORREX_SEED

# The real programs that tests and the demo run against.
PROGRAMS = set -e; \
	CORREX_LLAMA_SERVER=$$(scripts/llama-server); \
	CORREX_NATS=$$(scripts/nats); \
	CORREX_PROGRAMS=$$(scripts/programs); \
	export CORREX_LLAMA_SERVER CORREX_NATS CORREX_PROGRAMS;
SEED = echo "seed: CORREX_SEED=$(CORREX_SEED)";

comma := ,

.PHONY: build demo test check soak bench eval clean help need

build: need ## build bus, model-worker, tool-worker and projector into bin/
	@echo "building into bin/ (the first time takes a minute or two) ..."
	@$(GO) build $(BUILD) -o bin/ ./cmd/...
	@CGO_ENABLED=0 $(GO) build $(BUILD) -o bin/ ./cmd/tool-worker # starts itself for each process of a tool: sooner without C

demo: build ## fetch a small model and show a whole session; CORREX_MODEL and YES=1 are its options
	@set -e; \
	CORREX_LLAMA_SERVER=$$(scripts/llama-server); \
	CORREX_MODEL=$$(scripts/model); \
	export CORREX_LLAMA_SERVER CORREX_MODEL; \
	exec scripts/demo

test: need ## run the tests, against the real NATS, SQLite and llama-server
	@$(PROGRAMS) $(SEED) $(TEST) -timeout 20m ./...

check: need ## all that a change must pass: gofmt, vet, staticcheck, the tests with -race
	@echo "gofmt ..."; \
	bad=$$(gofmt -l .) && [ -z "$$bad" ] || { echo "not formatted (gofmt -w mends it):" $$bad; exit 1; }
	@echo "go vet ..."; $(GO) vet -tags $(TAGS) ./...
	@set -e; staticcheck=$$(scripts/staticcheck); echo "staticcheck ..."; "$$staticcheck" -tags $(TAGS) ./...
	@$(PROGRAMS) $(SEED) $(TEST) -race -count 1 -timeout 20m ./...

soak: need ## the long tests: hours of faults
	@$(PROGRAMS) $(SEED) CORREX_SOAK=1 $(TEST) -count 1 -timeout 120m ./...

bench: build ## measure, and print the table of docs
	@set -e; \
	CORREX_LLAMA_SERVER=$$(scripts/llama-server); \
	export CORREX_LLAMA_SERVER; \
	$(GO) run $(BUILD) ./internal/bench

eval: build ## have small models do small tasks; EVAL_MODELS=a.gguf,b.gguf names more of them, EVAL_TASKS=8 is a quick look
	@set -e; \
	CORREX_LLAMA_SERVER=$$(scripts/llama-server); \
	export CORREX_LLAMA_SERVER; \
	model=$$(scripts/model); \
	$(GO) build $(BUILD) -o .cache/eval ./internal/eval; \
	.cache/eval -doc docs/small-models.md -tasks "$(or $(EVAL_TASKS),0)" -model "$$model" $(foreach m,$(subst $(comma), ,$(EVAL_MODELS)),-model "$(m)")

clean: ## remove what was built; rm -rf .cache removes what was fetched
	rm -rf bin .cache/test-bin .cache/test-bin.lock

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile | expand -t 10

need:
	@scripts/need go cc
