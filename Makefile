# What a person does with this repository. CI runs .ci/run, which is also
# `make check`.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS  = -s -w -X main.version=$(VERSION)
CERTS    = deploy/certs
# docker compose where the plugin is there, else docker-compose.
COMPOSE ?= $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose) -p idnode -f deploy/docker-compose.yml
# The nodes' ports as deploy/docker-compose.yml publishes them.
ENDPOINTS = 127.0.0.1:7400 127.0.0.1:7410 127.0.0.1:7420

.PHONY: build test check fmt generate up image certs down clean fuzz-short

build: ## the program, in bin/
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o bin/idnode ./cmd/idnode

test: ## all tests
	go test ./...

check: ## what CI does
	.ci/run

fuzz-short: ## every fuzz test for a moment
	.ci/fuzz

fmt: ## format all Go files
	go tool -modfile=tools/go.mod gofumpt -l -w .

generate: ## the Go code of the proto files
	go tool -modfile=tools/go.mod buf generate

image: build ## the container image idnode:local
	mkdir -p deploy/data
	cp bin/idnode deploy/idnode
	docker build -q -t idnode:local deploy

certs: $(CERTS)/ca.crt ## certificates for three nodes and a client, once

# The containers run as a user of their own, who must be able to read the keys.
# Certificates for a cluster that others can reach belong in a secret store.
$(CERTS)/ca.crt: | build
	bin/idnode certs $(CERTS) --node A --node B --node C
	chmod 755 $(CERTS)
	chmod 644 $(CERTS)/A.key $(CERTS)/B.key $(CERTS)/C.key

up: image certs ## three nodes in containers, until `make down`
	$(COMPOSE) up -d
	@for endpoint in $(ENDPOINTS); do \
	  for try in $$(seq 60); do \
	    if bin/idnode health --timeout 1s --endpoint $$endpoint --tls-ca $(CERTS)/ca.crt \
	      --tls-cert $(CERTS)/client.crt --tls-key $(CERTS)/client.key >/dev/null 2>&1; then \
	      echo "$$endpoint serves"; continue 2; \
	    fi; \
	    sleep 1; \
	  done; \
	  echo "$$endpoint does not serve after a minute: see $(COMPOSE) logs" >&2; exit 1; \
	done

down: ## stop the containers and keep their data
	$(COMPOSE) down

clean: ## stop the containers and drop their data, the certificates and the builds
	-$(COMPOSE) down --volumes
	rm -rf bin .cache deploy/idnode deploy/data $(CERTS)
