# What a person does with this repository. CI runs .ci/run, which is also
# `make check`.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
# Without gRPC's old traces nothing calls methods by their names, and the linker can
# leave out those that nobody calls: a seventh of the program.
TAGS     = grpcnotrace
LDFLAGS  = -s -w -X main.version=$(VERSION)

# The targets below run every test that they name, but for `make test`.
export TEST_TIER = all

.PHONY: build reproducible packages-test test check simulate replay fmt generate up upgrade replace recover backup restore image down clean release fuzz-short chaos clients invoicing matrix damage vulndb golden mutants explore stress attacks

build: ## the program, in bin/
	CGO_ENABLED=0 go build -tags $(TAGS) -trimpath -ldflags "$(LDFLAGS)" -o bin/idnode ./cmd/idnode

release: ## what is published, in dist/: archives, packages for linux, bills of materials, sums
	.ci/release "$(VERSION)" dist

reproducible: ## a release is built twice, by different means, and must be the same
	.ci/reproducible

packages-test: ## the deb is installed, upgraded and removed in a container
	.ci/package-test

# With the flags of `make build`, so that nothing is compiled twice; vet is part of `make check`.
test: ## the quick tests, five minutes on two cores
	TEST_TIER= CGO_ENABLED=0 go test -vet=off -trimpath -tags $(TAGS) ./... github.com/idnode/idnode/client/...

check: ## what CI does, all tests among it
	.ci/run

# How many plans `make simulate` draws.
SEEDS ?= 2000
simulate: ## whole nodes in virtual time: SEEDS plans, or one SEED with its log
	cd test/simulation && go test -count=1 -timeout $(if $(SEED),0,4h) -run 'TestSeeds$$' $(if $(SEED),-seed $(SEED),-seeds $(SEEDS))

replay: ## one SEED of the simulation, in WebAssembly: every run is the same
	GOOS=wasip1 GOARCH=wasm go test -c -o .cache/simulation.wasm ./test/simulation
	cd tools && go run ./replay ../.cache/simulation.wasm ../test/simulation -test.run 'TestSeeds$$' -seed $(SEED)

# How long `make chaos` breaks things.
DURATION ?= 30m
chaos: ## all kinds of faults in real processes for DURATION, drawn from SEED
	IDNODE_E2E_CHAOS=$(DURATION) $(if $(SEED),IDNODE_E2E_SEED=$(SEED)) go test -count=1 -v -timeout 0 -run 'TestF29Mixture$$' ./test/e2e/matrix

# The program whose figures `make attacks` puts beside, built with -tags failpoint.
BEFORE ?=
attacks: ## the table of attacks on a cluster, with what another caller sees
	IDNODE_E2E_BEFORE=$(BEFORE) go test -count=1 -v -timeout 30m -run 'TestAttacks$$' ./test/e2e

# make stress PACKAGE=./cluster
stress: ## many copies of one PACKAGE's tests at once, with the race detector: finds tests that rest on timing
	.ci/stress $(PACKAGE)

# Each row of the matrix at full length takes hours; LENGTH=medium is half an hour.
LENGTH ?= full
containers: ## the containers of deploy/docker-compose.yml, broken for DURATION, drawn from SEED
	IDNODE_E2E_CONTAINERS=$(DURATION) $(if $(SEED),IDNODE_E2E_SEED=$(SEED)) go test -count=1 -v -timeout 0 -run 'TestContainersMixture$$' ./test/e2e

clients: ## the clients of clients/ against clusters whose leaders are killed, and then frozen, three minutes each
	IDNODE_E2E_CLIENTS=3m go test -count=1 -v -timeout 90m ./test/e2e/clients

# How many invoices `make invoicing` writes.
INVOICES ?= 1000000
invoicing: ## INVOICES by examples/invoicing, which is killed all the time, as are the cluster's leaders; once all nodes are lost
	IDNODE_E2E_INVOICES=$(INVOICES) go test -count=1 -v -timeout 0 ./test/e2e/invoicing

matrix: ## each kind of fault, LENGTH full or medium; writes the figures into test/e2e/matrix/README.md
	IDNODE_MATRIX=$(LENGTH) IDNODE_E2E_CHAOS=$(DURATION) IDNODE_MATRIX_PAGE=$(CURDIR)/test/e2e/matrix/README.md \
	  go test -count=1 -v -timeout 0 ./test/e2e/matrix

# How many damages `make damage` tries on data directories, and how many on nodes.
DAMAGES ?= 4000
DAMAGED_NODES ?= 60
damage: ## DAMAGES to the files of a node, drawn from SEED; writes the figures into test/e2e/damage/README.md
	IDNODE_DAMAGES=$(DAMAGES) IDNODE_DAMAGED_NODES=$(DAMAGED_NODES) $(if $(SEED),IDNODE_E2E_SEED=$(SEED)) \
	  IDNODE_DAMAGE_PAGE=$(CURDIR)/test/e2e/damage/README.md go test -count=1 -v -timeout 0 ./test/e2e/damage

# How many more of each of its faults `make explore` allows a scenario, and how many worlds
# it holds: so many took 13 GB.
MORE ?= 1
MOST ?= 20000000
explore: ## all orders of events in small worlds, with MORE of each fault and at most MOST worlds each, or one SCENARIO
	go test -count=1 -v -timeout 0 -run 'TestScenarios$$' ./test/exploration -more $(MORE) -most $(MOST) $(if $(SCENARIO),-scenario $(SCENARIO))

golden: ## on the day of a release: the files by which tests see what later programs break; elsewhere never
	TEST_TIER=all go test -count=1 -run 'Kept$$' ./test/compat ./fsm ./cluster/transport ./server/service ./server/metrics \
	  ./server/httpapi ./server/jsonapi ./cmd/idnode ./test/e2e ./test/e2e/clients -golden

mutants: ## plants a bug at a time and says which test finds it
	go run ./test/mutants

fuzz-short: ## every fuzz test for a moment
	.ci/fuzz

fmt: ## format all Go files
	GOWORK=off go tool -modfile=tools/go.mod gofumpt -l -w .

generate: ## the Go code of the proto files, and docs/reference/openapi.yaml, if buf has nothing to say against them
	GOWORK=off go tool -modfile=tools/go.mod buf lint
	GOWORK=off go tool -modfile=tools/go.mod buf generate
	GOWORK=off go tool -modfile=tools/go.mod buf generate --template buf.gen.openapi.yaml --path proto/idnode/v1
	.ci/sums > proto/generated.sum

# Where the entries come from: a zip, its address, or the data/osv of github.com/golang/vulndb.
VULNDB ?= https://vuln.go.dev/vulndb.zip
vulndb: ## what is known of vulnerabilities in the modules here, for machines that cannot ask
	cd tools && go run ./vulndb .. $(VULNDB) > vulndb/known.new && mv vulndb/known.new vulndb/known.jsonl

image: build ## the container image idnode:local
	deploy/image bin/idnode idnode:local $(shell go env GOARCH) | docker load -q

up: build ## three nodes in containers, until `make down`; those that serve are changed one after the other
	deploy/compose up

upgrade: $(if $(IMAGE),build,image) ## this source, or an IMAGE, in one container after the other
	deploy/compose upgrade $(IMAGE)

replace: build ## a new node in the place of NODE (a, b or c), whose data are lost
	deploy/compose replace "$(NODE)" $(if $(YES),--yes)

recover: build ## goes on with the data of NODE alone, every counter raised by SKIP, and replaces the two others
	deploy/compose recover "$(NODE)" "$(SKIP)" $(if $(YES),--yes)

TO ?= backups
KEEP ?= 24
backup: build ## the newest KEEP backups of the containers' cluster, in TO
	deploy/compose backup "$(TO)" $(KEEP)

restore: build ## merges the backup FROM, with counters raised by SKIP; with ANEW=yes into a new cluster, as all data are lost
	deploy/compose $(if $(ANEW),anew,restore) "$(FROM)" "$(SKIP)" $(if $(YES),--yes)

down: ## stop the containers and keep their data
	deploy/compose down

clean: ## drop the builds, and the containers with their data and certificates, which asks
	deploy/compose drop $(if $(YES),--yes)
	rm -rf bin dist .cache deploy/certs
