# quorumd: `make help` lists the targets.
# All build results and downloads are in bin/ and .cache/; `make clean` removes both.

GO      ?= go
GOTEST  ?= $(GO) test
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
CACHE   := $(CURDIR)/.cache
LINT    := $(CACHE)/bin/golangci-lint
GOLANGCI_LINT_VERSION := v2.15.0
VULNCHECK := $(CACHE)/bin/govulncheck
VULNCHECK_VERSION := v1.9.0
FUZZTIME ?= 30s
PROMTOOL := $(CACHE)/prometheus/usr/bin/promtool
AMTOOL   := $(CACHE)/prometheus/usr/bin/amtool
MIXIN    := $(CACHE)/prometheus/etcd-mixin.json
JSONNET  := $(CACHE)/bin/jsonnet
JSONNET_VERSION := v0.22.0
ETCD_MIXIN_VERSION := v3.6.14

export CGO_ENABLED ?= 0
# Without -trimpath, which only package builds use: the tests then reuse the compiled code.
BUILDFLAGS := -buildvcs=false
BUILD := $(GO) build $(BUILDFLAGS)

# The end-to-end tests run separately, because they check times.
E2E  := ./contrib/e2e
UNIT  = $(shell $(GO) list ./... | grep -v /contrib/e2e$$)

.DEFAULT_GOAL := help

# Check the Go version first: an old Go would only report an unknown flag.
ifneq ($(filter-out help clean,$(or $(MAKECMDGOALS),help)),)
GO_MISSING := $(shell contrib/need-go.sh "$(GO)")
ifneq ($(GO_MISSING),)
$(error $(GO_MISSING))
endif
endif

.PHONY: help lab lab-restarts lab-packages lab-up lab-shell lab-do lab-down packages package-version etcd-package test-packages build test test-more test-long test-root test-race test-matrix test-faults test-s3 fault-table vm test-promotion test-alerts test-systemd model model-deep mutants nightly test-model-etcd sim sim-fleet fuzz demo demo-svg bench bench-compare bench-health reference lint vulncheck etcd etcd-all clean FORCE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: bin/quorumd bin/quorumctl ## build quorumd and quorumctl into bin/

bin/quorumd bin/quorumctl: bin/%: FORCE
	$(BUILD) -ldflags "-s -w -X github.com/prometheus/common/version.Version=$(VERSION)" -o $@ ./cmd/$*

# Package versions must sort: a release has its tag, any other commit its date, which sorts below every release.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
PACKAGE_VERSION ?= $(shell git describe --tags --exact-match --match 'v*' 2>/dev/null | sed 's/^v//; s/-/~/g' | grep . || \
  TZ=UTC git log -1 --date=format-local:%Y%m%d%H%M%S --format='0.0.0~git%cd.%h' --abbrev=7 2>/dev/null)
PACKAGES ?= bin/packages
NFPM   := $(CACHE)/packaging/bin/nfpm
MD2MAN := $(CACHE)/packaging/bin/go-md2man

package-version:
	@[ -n '$(PACKAGE_VERSION)' ] || { echo 'cannot determine the package version without git and a git checkout' \
	  '→ make packages PACKAGE_VERSION=1.2.3' >&2; exit 1; }

packages: package-version $(NFPM) $(MD2MAN) ## build DEB and RPM for amd64 and arm64 into bin/packages/; takes minutes
	$(GO) run ./packaging/build -version $(PACKAGE_VERSION) -nfpm $(NFPM) -md2man $(MD2MAN) -out $(PACKAGES)

etcd-package: $(NFPM) $(MD2MAN) ## build DEB and RPM of the pinned etcd with a hardened unit, for hosts whose own etcd is too old
	$(GO) run ./packaging/build -package etcd -stage $(CACHE)/packaging/stage-etcd -nfpm $(NFPM) -md2man $(MD2MAN) -out $(PACKAGES)

# The packages are built three times: the first version, the same again for comparison, and the version to upgrade to.
PK      := $(CACHE)/packaging
PACKAGE  = $(GO) run ./packaging/build -nfpm $(NFPM) -md2man $(MD2MAN)

# Package tests that reboot a host a dozen times.
NIGHTLY_PACKAGES := TestAnEtcdWithDataStartsAtEveryBoot

test-packages: $(NFPM) $(MD2MAN) $(PK)/root $(PK)/root-trixie $(PK)/etcd ## test the packages on booted hosts (needs root and Debian; see .ci/run); SHORT=1
	rm -rf $(PK)/first $(PK)/again $(PK)/next $(PK)/own
	$(PACKAGE) -version 0.9.0 -stage $(PK)/stage -out $(PK)/first
	$(PACKAGE) -version 0.9.0 -stage $(PK)/stage-again -out $(PK)/again -arch amd64
	$(PACKAGE) -version 9.9.9 -stage $(PK)/stage -out $(PK)/next -arch amd64
	$(PACKAGE) -package etcd -stage $(PK)/stage-etcd -out $(PK)/own -arch amd64
	$(GOTEST) -count=1 -timeout 15m -tags packages $(if $(SHORT),-skip '$(NIGHTLY_PACKAGES)') -v ./packaging

# Debian 12, the oldest release that the packages support, and 13, where the simulated attacks run as well.
$(PK)/root: SUITE := bookworm
$(PK)/root-trixie: SUITE := trixie
$(PK)/root $(PK)/root-trixie:
	mkdir -p $(PK)
	rm -rf $@.new
	mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,dbus,polkitd,adduser,procps,rpm $(SUITE) $@.new
	rm -f $@.new/etc/machine-id $@.new/etc/hostname $@.new/etc/resolv.conf
	mv $@.new $@

$(PK)/etcd:
	mkdir -p $@
	cd $@ && apt-get -q -o APT::Sandbox::User=root download etcd-server

$(NFPM): packaging/tools/go.mod
	$(GO) build -C packaging/tools $(BUILDFLAGS) -o $@ github.com/goreleaser/nfpm/v2/cmd/nfpm

$(MD2MAN): packaging/tools/go.mod
	$(GO) build -C packaging/tools $(BUILDFLAGS) -o $@ github.com/cpuguy83/go-md2man/v2

# Tests write to the checkout, which has enough space: /tmp is often small or in memory.
TESTS = mkdir -p '$(CACHE)/tmp' && TMPDIR='$(CACHE)/tmp'

# Tests that need minutes: large fleets, seeds of old simulated failures, faults at every step of every operation.
LONG_FLEETS := TestAFleetSendsEtcdFewRequestsAtAnySize|TestSimultaneousRequestsAtARealEtcdAreServedOneByOne|$\
	TestADeadVoterCostsASpareAsLittleInALargeFleet|$\
	TestSimultaneousRequestsAreServedOneByOneInOrder|TestAQueuedRequestIsNotOverdue
# Tests that take minutes under the race detector and exercise nothing there that smaller tests do not, or check times.
RACE_LARGE  := $(LONG_FLEETS)|TestTheNextHostInTheQueueKeepsObservingAllOthers|TestHostsStartedTogetherDriftApart|$\
	TestAMutedFindingIsReportedAgainAfterTheMuteHasExpired|TestAStepInALargeFleetIsDecidedOnCurrentState|$\
	TestAScrapeIsCheapAndQueriesNothingAtAnyFleetSize|$\
	TestPageOfTenThousandHostsIsSmallAndShowsUnhealthyHosts
# Tests that take a minute each on an idle machine, too long for make test. CI runs them in a separate step.
MORE        := TestNoEtcdIsStoppedForADowngradeBeforeTheOlderOneCanStart|TestEveryMistakeInADowngradeBreaksItsPromise|$\
	TestThePolicyKeepsItsPromisesInSmallScopes|$\
	TestEveryMistakeBreaksItsPromise|TestForgottenDetailsDecideNothing|$\
	TestAnEventAndItsOperationHaveTheSameEffectOnEtcd|$\
	TestAClusterIsRecoveredFromQuorumLossOnlyByAPlan|$\
	TestARunWithQuorumLossIsReproducible|TestAFlappingVoterIsReplacedAtMostOnceInAnHour|$\
	TestTwoFlappingVotersReplaceEachOtherEverMoreRarely|$\
	TestNoWeatherBreaksAPromise|TestContaminatedSamplesNeverBlameTheDisk|$\
	TestACutOffVoterThatServesIsNeverReportedDead|TestThreeVotersRotateTheCAUnderWrites|$\
	TestAPlannedChangeEndsAfterAFault|$\
	TestThreeVotersWithOneCAGetAPeerCAUnderWrites|$\
	TestKubeadmControlPlanesAreAdoptedAndGoDownOneAtATime|$\
	TestOperatorProgramsStopAndStartAnEtcdRunByTheKubelet|$\
	TestHostsJoinOverTLSAndReloadReplacedCertificates|$\
	TestTheSpareTestsRestoresAndEveryHostReportsAFailedOne|$\
	TestWithAuthenticationQuorumdReportsTheRoleItNeedsAndWorksWithIt
LONG_SIM    := TestEverySeededMistakeIsFound|TestRegressionSeedsFindNothing
TESTS_WITH   = $(shell grep -l '^//go:build $(1)$$' contrib/e2e/*.go | xargs sed -n 's/^func \(Test[A-Za-z0-9]*\).*/\1/p' | paste -sd'|')
# Without the tests of test-matrix. No comment may end the line: the space before it would become part of the last name.
LONG_E2E     = $(shell echo '$(call TESTS_WITH,long)' | tr '|' '\n' | grep -v '^TestMatrix' | paste -sd'|')
NIGHTLY_E2E  = $(shell echo '$(call TESTS_WITH,nightly)' | tr '|' '\n' | grep -vx TestAPlannedChangeEndsAfterAFault | paste -sd'|')
# Long tests that take minutes and have a faster variant, with fewer hosts or with a follower.
NIGHTLY_LONG := TestAVoterRollsBackAJoinWhoseAgentStaysDead|TestADeadVoterThatIsBackBeforeItsRemovalStays|$\
	TestQuorumLossOfFiveLeavesTwoAndOneMovesItsDataAside|$\
	TestASpareReplacesADeadLeaderWhichReturnsAsASpare|TestEveryHostReportsWhichMembersItReaches|$\
	TestNoDeadVoterIsRemovedWhileAnAlarmIsActive
# The longest tests of the lab, whose faults other tests cover in a milder form.
NIGHTLY_LAB := TestADefragmentationRunsAsEtcdsUserOnEveryHost|TestOneVoterBecomesNineAndOneAgain|$\
	TestPeerURLsMoveToAnotherSubnetAndToHTTPSWithoutAFailedWrite|$\
	TestPeerURLsOfFiveVotersMoveToAnotherSubnetAndToHTTPSWithoutAFailedWrite|$\
	TestAPermanentLearnerJoinsOnceEveryRunningEtcdAllowsASecondLearner|$\
	TestThreeVotersAreUpgradedAndDowngradedWithoutAFailedWrite|TestFiveVotersAreUpgradedAndDowngradedWithoutAFailedWrite|$\
	TestRetiredHostsLeaveWithoutAFailedWriteAndStayOut|$\
	TestAHostWhoseDiskIsReplacedInMaintenanceServesAgainUnattended|$\
	TestAHostWithASlowDiskStaysOutUntilItsDiskIsFast|$\
	TestAHostLosesPowerAtEveryPhaseOfAJoin|TestACutOffJoinerBlocksNoOtherHostForGood|$\
	TestAHostLostInMaintenanceBlocksTheOthersUntilItIsReleased|TestARolloutOverFiveVotersFailsNoWrite|$\
	TestARolloutOfACommandRunsItOnceOnEachHostWhileItsEtcdIsDown|$\
	TestASpareReplacesADeadFollowerAndThenADeadLeader|TestAVoterThatAnyHostReachesIsNeverReplaced|$\
	TestAMinorityWithStaleReportsOfADeadVoterRemovesNoVoter|$\
	TestTwoDeadOfFiveAreReplacedOnlyIfTheyShareAFailureDomain|$\
	TestTheStandbyReplacesADeadVoterOfAGigabyteAsFastAsAnEmptyOne|$\
	TestALeaderWithASlowDiskTransfersLeadershipAndIsReplacedByTheStandby|$\
	TestQuorumLossOfThreeIsRecoveredByTheThreeDocumentedCommands|$\
	TestDebian13AuthenticatesUsersByCertificate|$\
	TestDebian11AuthenticatesQuorumdByPassword|$\
	TestQuorumLossOfFiveIsRecoveredByTheThreeDocumentedCommands|$\
	TestASurvivorCompletesAPlanDespiteRepeatedPowerLosses|$\
	TestAClusterSurvivesTenShutdownsAndStartsOfAllHosts

# The longest tests with a slow disk.
NIGHTLY_FAULTS := TestASpareReplacesAFollowerWithASlowDisk|$\
	TestAVoterWithASlowDiskIsRemovedAlthoughTheAgentThatReplacesItIsGone|TestASurplusVoterWhoseDiskHasRecoveredIsReported|$\
	TestASpareReplacesAFollowerWithAHungDiskAfterAMinute|$\
	TestTheStandbyReplacesAVoterWithAFailedDiskAtOnce|TestAVoterWhoseDiskWorksAgainBeforeItsRemovalStays|$\
	TestFullStrengthReturnsWhateverFailsDuringTheRepairOfAFailedDisk|$\
	TestASpareReplacesAStandbyWithAnUnhealthyDisk|TestALeaderWithAnAlmostStuckDiskLosesLeadership|$\
	TestFullStrengthReturnsWhateverFailsDuringTheRepairOfASlowDisk

test: etcd build ## run the tests that need only Go, in minutes, with real etcd 3.6 as plain processes and 1 GB of disk below .cache/
	@# More packages at once than CPUs: many wait for an etcd, a timeout or a program, and not for a CPU.
	@# make lint vets. The timeout is for a test that hangs: on a busy machine a package may take half an hour.
	@echo 'unit tests of $(words $(UNIT)) packages; tests that take minutes: make test-more, make test-long'
	@$(TESTS) $(GOTEST) -p 6 -vet=off -timeout 1h -skip '$(LONG_FLEETS)|$(LONG_SIM)|$(MORE)' $(UNIT) || red='unit tests'; \
	echo 'end-to-end tests: real agents and real etcd on loopback'; \
	$(TESTS) $(GOTEST) -vet=off -timeout 1h -skip '$(MORE)' $(E2E) || red="$${red:+$$red and }end-to-end tests"; \
	[ -z "$$red" ] || { echo "red: $$red"; exit 1; }

test-more: etcd build ## run tests of a minute each: model scopes, quorum loss, partitions, CA rotation, kubelets; SKIP=
	$(TESTS) $(GOTEST) -p 1 -timeout 15m -tags 'long nightly' -run '^($(MORE))$$' $(if $(SKIP),-skip '$(SKIP)') ./agent/policy/model ./agent/sim ./health $(E2E)

test-long: etcd build ## run the longest tests: fleets of hundreds of hosts, faults at every step
	$(TESTS) $(GOTEST) -timeout 20m -run '^($(LONG_FLEETS))$$' ./agent
	$(GOTEST) -timeout 10m -tags long -run 'AWeekOf' ./health
	$(TESTS) $(GOTEST) -timeout 25m -parallel 6 -tags long -run '^($(LONG_E2E))$$' -skip '$(NIGHTLY_LONG)' $(E2E)

test-root: etcd build ## run the tests with other users (needs root, and Debian's monitoring-plugins-basic)
	$(GOTEST) -count=1 -timeout 10m -tags root -run 'Stranger|Closed|Debian' ./contrib/e2e ./agent/fileaccess ./agent/externalcheck ./systemd/roothelper

test-race: etcd build ## run the tests under the race detector (needs a C compiler); SHORT=1 without simulation and clusters
	@# Package health starts no goroutine, and takes four minutes under the race detector.
	$(TESTS) CGO_ENABLED=1 $(GOTEST) -race -p 4 -timeout 30m -skip '$(RACE_LARGE)' \
	  $(filter-out %/agent/sim %/policy/model %/quorumd/health,$(UNIT))
ifndef SHORT
	$(TESTS) CGO_ENABLED=1 $(GO) test -race -timeout 10m -run 'StoryOfOneSeed|HostsWithExternalEtcds|NoFaultBreaks' ./agent/sim -args -sim.hours=10
	$(TESTS) CGO_ENABLED=1 $(GOTEST) -race -timeout 15m -run TestFourHosts $(E2E)
endif

test-matrix: etcd-all build ## test join and promotion with etcd 3.4 (Debian's), 3.5, 3.6 and 3.7
	$(TESTS) QUORUMD_ETCD_VERSIONS="v3.4 v3.5 v3.6 v3.7" $(GOTEST) -count=1 -timeout 20m -tags long -run 'TestMatrix' -v ./contrib/e2e
	$(TESTS) QUORUMD_ETCD_VERSIONS="v3.5 v3.6 v3.7" $(GOTEST) -count=1 -timeout 5m -run 'MayUseThePrefixAlone' -v ./agent/cluster
	$(TESTS) QUORUMD_ETCD_VERSIONS="v3.5 v3.6 v3.7" $(GOTEST) -count=1 -timeout 10m -run 'RunsAlone' ./agent/recovery/rebuild
	$(TESTS) QUORUMD_ETCD_VERSIONS="v3.4 v3.5 v3.6 v3.7" $(GOTEST) -count=1 -timeout 10m -run 'IsServedBy' ./agent/backup/restoretest

test-faults: etcd build $(CACHE)/faultfs ## run the tests on a file system with faults (needs root and /dev/fuse)
	$(GO) test -C contrib/faultfs -count=1 -timeout 5m ./...
	$(TESTS) $(GOTEST) -count=1 -timeout 25m -tags faultfs -run 'Disk|Faultfs' -skip '$(NIGHTLY_FAULTS)' ./disk ./contrib/testbed ./contrib/e2e ./cmd/quorumctl/qualify ./agent/externalcheck ./agent/backup
	$(TESTS) $(GOTEST) -count=1 -timeout 10m -tags faultfs ./contrib/faults

test-s3: etcd build $(CACHE)/s3/versitygw ## test snapshots in a real S3 server, which takes minutes to build (needs root, for a small file system)
	$(TESTS) $(GOTEST) -count=1 -timeout 10m -tags s3 ./agent/backup
	$(TESTS) $(GOTEST) -count=1 -timeout 10m -tags 'long s3' -run 'FromS3' ./contrib/e2e

$(CACHE)/s3/versitygw: contrib/s3/go.mod
	$(GO) build -C contrib/s3 $(BUILDFLAGS) -ldflags "-s -w" -o $@ github.com/versity/versitygw/cmd/versitygw

fault-table: etcd build $(CACHE)/faultfs ## inject every fault, and write the findings to contrib/faults/FAULTS.md (needs root)
	$(TESTS) QUORUMD_FAULT_ROWS=. $(GO) test -count=1 -timeout 45m -tags 'faultfs long' -run InTime -v ./contrib/faults
	$(GO) test ./contrib/faults -update

vm: build $(CACHE)/faultfs $(CACHE)/vm/initrd ## inject the faults that need a kernel of their own, in a virtual machine (needs root, Debian and qemu)
	$(TESTS) QUORUMD_FAULT_ROWS=. $(GO) test -count=1 -timeout 40m -tags vm -run Machine -v ./contrib/faults
	$(GO) test ./contrib/faults -update

$(CACHE)/vm/initrd: $(wildcard contrib/faults/vm/*)
	contrib/faults/vm/build.sh $(CACHE)/vm

test-alerts: $(PROMTOOL) $(AMTOOL) $(MIXIN) etcd build $(CACHE)/faultfs ## test alerts and dashboard with recorded series, and on a real cluster with faults, Prometheus and Alertmanager; UPDATE=1 writes contrib/docs/alert-tests.md
	cd contrib/prometheus && $(PROMTOOL) check rules quorumd.rules.yaml && $(PROMTOOL) test rules quorumd.rules.test.yaml quorumd.rules.weeks.test.yaml
	$(PROMTOOL) check rules $(MIXIN)
	$(AMTOOL) check-config contrib/prometheus/alertmanager.yaml
	$(TESTS) $(GOTEST) -count=1 -timeout 10m -tags 'prometheus faultfs' -run ARealPrometheus $(E2E) $(if $(UPDATE),-update)

# promtool and amtool are extracted from Debian's packages: installing these would also start a server.
$(PROMTOOL): DEBIAN := prometheus
$(AMTOOL): DEBIAN := prometheus-alertmanager
$(PROMTOOL) $(AMTOOL):
	mkdir -p $(CACHE)/prometheus
	cd $(CACHE)/prometheus && apt-get download -q $(DEBIAN) && dpkg-deb -x $(DEBIAN)_*.deb . && rm $(DEBIAN)_*.deb

# etcd's own alerting rules (its mixin) are in the Go module of etcd's repository. The JSON output is valid YAML.
$(MIXIN): $(JSONNET)
	mkdir -p $(dir $@)
	dir=$$($(GO) mod download -json go.etcd.io/etcd/v3@$(ETCD_MIXIN_VERSION) | sed -n 's|.*"Dir": "\(.*\)".*|\1|p') && \
	$(JSONNET) -J "$$dir/contrib/mixin" -e '((import "config.libsonnet") + (import "alerts/alerts.libsonnet")).prometheusAlerts' >$@.new
	mv $@.new $@

$(JSONNET):
	GOBIN=$(dir $@) $(GO) install github.com/google/go-jsonnet/cmd/jsonnet@$(JSONNET_VERSION)

test-promotion: etcd build ## test that promoting a learner of 1 GB causes no gap in the writes (needs an idle machine)
	$(GO) test -count=1 -timeout 15m -tags slow -run 'TestALearnerOfAGigabyte' -v ./contrib/e2e

model: ## explore the policy exhaustively, and check that every seeded mistake is found; SHORT=1 without the largest scopes
	$(GO) run ./contrib/model $(if $(SHORT),-short)

model-deep: ## explore larger scopes, each exhaustively or up to 20 million states
	GOMEMLIMIT=12GiB $(GO) run ./contrib/model -deep -states 20000000

# HOURS and FROM select what is simulated; SEED prints the events of one cluster instead.
SIM = $(GO) test -count=1 -timeout 5h -v -run 'HostsWithExternalEtcds|NoFaultBreaks|Seed' ./agent/sim -args -sim.hours=$(or $(HOURS),10000) $(if $(FROM),-sim.from=$(FROM))

sim: ## simulate whole agents in virtual time with faults for HOURS=10000; SEED=42 prints the events of one cluster
ifdef SEED
	@$(GO) test -count=1 -v -run StoryOfOneSeed ./agent/sim -args -sim.seed=$(SEED)
else
	GOGC=off GOMEMLIMIT=1500MiB $(SIM)
endif

sim-fleet: ## measure the load of a fleet on etcd, idle and when a place becomes free: SPARES=2000
	GOGC=50 $(GO) test -count=1 -timeout 3h -run AFleetSendsEtcdFewRequests -v ./agent -args -fleet.spares=$(or $(SPARES),2000)

nightly: model-deep etcd build $(CACHE)/faultfs ## run what is too slow for every change: large scopes, 10,000 simulated hours, every mutant, the whole lab
	$(TESTS) $(GO) test -count=1 -timeout 120m -parallel 6 -tags 'long nightly' -run '^($(NIGHTLY_E2E)|$(NIGHTLY_LONG))$$' $(E2E)
	$(TESTS) $(GO) test -count=1 -timeout 150m -tags faultfs -run '^($(NIGHTLY_FAULTS))$$' $(E2E)
	$(TESTS) $(GO) test -count=1 -timeout 15m -tags 'long faultfs' -run UnsyncedWritesWereLost $(E2E)
	$(MAKE) test-long
	$(MAKE) test-race
	$(MAKE) model
	CGO_ENABLED=1 $(GO) test -race -timeout 60m ./agent/policy/model
	$(MAKE) test-model-etcd
	$(MAKE) sim HOURS=10000
	$(MAKE) sim-fleet SPARES=1000
	$(MAKE) bench-health SEEDS=100
	$(MAKE) mutants EVERY=1
	$(GO) test -count=1 -timeout 15m -tags root -run FaultsOfARealNetwork ./agent/network
	$(MAKE) test-promotion
	$(MAKE) fault-table
	$(MAKE) vm
	$(MAKE) fuzz FUZZTIME=5m
	$(MAKE) test-packages
	$(MAKE) lab
	$(MAKE) lab-restarts
	contrib/anywhere

mutants: ## change the policy in one place at a time, and check that its tests fail: EVERY=6th change, ONLY='quorum.go'
	$(GO) run ./contrib/mutants -every $(or $(EVERY),6) $(if $(ONLY),-only '$(ONLY)')

test-model-etcd: $(CACHE)/etcd/v3.5/etcd $(CACHE)/etcd/v3.6/etcd ## compare the model of etcd with etcd 3.5 and 3.6; DEEP=1 PART=3m RUN=Lease
	$(TESTS) $(GOTEST) -count=1 -parallel 16 -timeout $(if $(DEEP),12h,20m) -tags realetcd -run '$(or $(RUN),RealEtcd|FalseClaim|Lease)' -v ./agent/policy/model $(if $(DEEP),-args -deep -bound 11h) $(if $(PART),-args -part $(PART))

test-systemd: ## test the systemd package against a real systemd (needs root, and Debian's systemd and dbus)
	$(GOTEST) -count=1 -timeout 10m -tags systemdtest ./systemd

# On a busy machine a target may fail at the end of its time without a failing input ("context deadline exceeded"). A
# failed target therefore runs once more: a failing input is then in testdata, and fails again.
fuzz: ## run every fuzz target for FUZZTIME (30s), two at a time
	@for package in $$($(GO) list ./...); do \
	  $(GO) test -list '^Fuzz' $$package | sed -n "s|^Fuzz.*|$$package &|p"; \
	done | xargs -t -n 2 -P 2 sh -c \
	  'f() { $(GO) test -run "^$$" -fuzz "^$$1$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x -parallel 1 $$0; }; f $$1 || f $$1'

# The lab needs two versions of the package for this machine's architecture, to test the upgrade from one to the other.
LAB := $(CACHE)/lab
LAB_PACKAGE = $(GO) run ./packaging/build -arch $$($(GO) env GOARCH) -format deb -nfpm $(NFPM) -md2man $(MD2MAN)
LAB_COMMAND = bin/lab -dir $(LAB) -etcd $(CACHE)/etcd/v3.6/etcd -faultfs $(CACHE)/faultfs -deb $(LAB)/packages/now/*.deb

lab: lab-packages etcd $(if $(SHORT),,$(CACHE)/etcd/v3.5/etcd $(CACHE)/etcd/v3.7/etcd) bin/quorumctl $(CACHE)/faultfs ## test real hosts: join, power loss, partition, upgrade (needs root); RUN='Power' LANES=1 SHORT=1 ROUNDS=8
	$(GOTEST) -count=1 -timeout 60m -tags lab $(if $(RUN),-run '$(RUN)') $(if $(SHORT),-skip '$(NIGHTLY_LAB)') -v ./contrib/lab -args $(if $(LANES),-lab.lanes=$(LANES)) $(if $(ROUNDS),-lab.rounds=$(ROUNDS))

lab-restarts: lab-packages etcd $(CACHE)/faultfs ## measure writes while all hosts are restarted and rebooted, ROUNDS=20 times; needs an idle machine
	$(GO) test -count=1 -timeout 90m -tags lab -run 'Rollout' -v ./contrib/lab -args -lab.lanes=1 -lab.rounds=$(or $(ROUNDS),20)

lab-packages: $(NFPM) $(MD2MAN)
	rm -rf $(LAB)/packages
	$(LAB_PACKAGE) -version 0.0.1 -out $(LAB)/packages/now
	$(LAB_PACKAGE) -version 0.0.2 -out $(LAB)/packages/next
	$(LAB_PACKAGE) -package etcd -stage $(CACHE)/packaging/stage-etcd -out $(LAB)/packages/etcd

lab-up: lab-packages etcd $(CACHE)/faultfs ## boot five hosts with quorumd, to inspect and break by hand (needs root)
	$(BUILD) -o bin/lab ./contrib/lab/cmd/lab
	$(LAB_COMMAND) up

lab-shell: ## open a shell on a host of the lab: HOST=n2
	@bin/lab -dir $(LAB) shell $(or $(HOST),n1)

lab-do: ## break a host of the lab: DO="off n2"; without DO, list the commands
	@bin/lab -dir $(LAB) do $(DO)

lab-down: ## end the lab
	bin/lab -dir $(LAB) down

demo: $(CACHE)/etcd/v3.6/etcd build $(if $(SLOW),$(CACHE)/faultfs) ## form a cluster of four hosts on loopback, in a minute; SLOW=n4 ONCE=1
	@$(BUILD) -o bin/demo ./contrib/demo
	@bin/demo -quorumd bin/quorumd -etcd $(CACHE)/etcd/v3.6/etcd -faultfs $(CACHE)/faultfs -dir $(CACHE)/demo \
	  $(if $(SLOW),-slow $(SLOW)) $(if $(ONCE),-once)

# The demo needs a disk that meets the default limits: use DEMO_DIR=/dev/shm/quorumd-demo if there is none.
demo-svg: $(CACHE)/etcd/v3.6/etcd build ## record a run of the demo at default limits as contrib/docs/demo.svg; DEMO_DIR=
	$(BUILD) -o bin/demo ./contrib/demo
	bin/demo -quorumd bin/quorumd -etcd $(CACHE)/etcd/v3.6/etcd -dir $(or $(DEMO_DIR),$(CACHE)/demo) -default-limits \
	  -svg contrib/docs/demo.svg

# node_exporter needs the module proxy. Without it the report notes that this side of the row could not run.
NODE_EXPORTER := $(CACHE)/bench/node_exporter

bench: $(CACHE)/etcd/v3.6/etcd $(CACHE)/faultfs build ## measure what contrib/docs claims, compared with the plain way; ROWS=join SIZES=empty ROUNDS=1 QUICK=1 JSON=FILE
	@$(MAKE) --no-print-directory $(NODE_EXPORTER) || echo "bench: no node_exporter to compare with"
	$(BUILD) -o bin/bench ./contrib/bench
	bin/bench -quorumd bin/quorumd -etcd $(CACHE)/etcd/v3.6/etcd -exporter $(NODE_EXPORTER) \
	  -faultfs $(CACHE)/faultfs -dir $(CACHE)/bench \
	  -rows '$(ROWS)' -sizes '$(SIZES)' -rounds $(or $(ROUNDS),1) $(if $(QUICK),-quick) $(if $(JSON),-json '$(JSON)')

bench-compare: ## compare two files of make bench JSON=FILE: OLD=old.json NEW=new.json
	@$(GO) run ./contrib/bench -compare '$(OLD)' '$(NEW)'

bench-health: ## measure how slow disks are found, in virtual time; SEEDS=24 FIRST=1 HOURS=24 (of a healthy cluster) ONLY=tails,healthy JSON=FILE CHECK=1
	@$(BUILD) -o bin/failslow ./contrib/failslow
	@bin/failslow -seeds $(or $(SEEDS),24) -first $(or $(FIRST),1) -hours $(or $(HOURS),24) -pasts $(or $(PASTS),3) \
	  -only '$(ONLY)' -json '$(JSON)' $(if $(CHECK),-check) $(if $(VERBOSE),-v)

$(NODE_EXPORTER): contrib/bench/exporter/go.mod
	$(GO) build -C contrib/bench/exporter $(BUILDFLAGS) -ldflags "-s -w" -o $@ github.com/prometheus/node_exporter

reference: ## regenerate the reference pages and the figures in contrib/docs from the declarations
	$(GOTEST) ./agent/control/server -run OpenAPI -update
	$(GOTEST) ./cmd/quorumctl -run Reference -update
	$(GOTEST) ./cmd/quorumd/daemon -run Reference -update
	$(GOTEST) ./contrib/docs -run Figure -update

lint: $(LINT) ## go vet and golangci-lint
	$(GO) vet ./...
	$(GO) vet -tags 'long nightly faultfs prometheus lab root slow realetcd packages systemdtest vm s3' ./...
	$(LINT) run ./...

# The modules of the shipped programs: quorumd, and the etcd in the package quorumd-etcd.
vulncheck: $(VULNCHECK) ## check shipped programs for known vulnerabilities; VULNDB=URL of another database
	VULNDB='$(VULNDB)' contrib/vulncheck/check.sh $(VULNCHECK) . contrib/etcd/v3.6

$(VULNCHECK):
	GOBIN=$(dir $@) $(GO) install golang.org/x/vuln/cmd/govulncheck@$(VULNCHECK_VERSION)

$(LINT):
	GOBIN=$(dir $@) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

etcd: $(CACHE)/etcd/v3.6/etcd $(CACHE)/etcd/v3.6/small/etcd ## build the pinned etcd 3.6 for tests and demo

etcd-all: etcd $(foreach v,3.4 3.5 3.6 3.7,$(CACHE)/etcd/v$(v)/etcd) ## build or fetch all etcd versions of the matrix

$(CACHE)/etcd/v3.4/etcd: contrib/etcd/debian-3.4.sh
	contrib/etcd/debian-3.4.sh

$(CACHE)/etcd/%/etcd: contrib/etcd/%/go.mod
	@echo 'building etcd $*, which takes minutes the first time'
	$(GO) build -C contrib/etcd/$* $(BUILDFLAGS) -ldflags "-s -w" -o $@ go.etcd.io/etcd/server/v3

$(CACHE)/etcd/v3.6/small/etcd: contrib/etcd/v3.6/small/main.go contrib/etcd/v3.6/go.mod
	$(GO) build -C contrib/etcd/v3.6 $(BUILDFLAGS) -ldflags "-s -w" -o $@ ./small

$(CACHE)/faultfs: $(wildcard contrib/faultfs/*)
	$(GO) build -C contrib/faultfs $(BUILDFLAGS) -ldflags "-s -w" -o $@ .

clean: ## remove bin/ and .cache/
	rm -rf bin .cache
