// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/config"
)

// plan is a scenario, drawn from its seed.
type plan struct {
	Seed          uint64
	Hosts         int
	Voters        int
	Standbys      int
	Load          uint64        // entries per second that other clients write
	LearnerRate   uint64        // entries per second that a learner applies
	Faulty        time.Duration // how long faults are injected
	FaultInterval time.Duration // the mean time between two faults
	Fresh         bool          // faults begin before the cluster exists
	Timing        string        // the timing section of the configuration
	Intruders     bool          // another client writes below quorumd's prefix
	Dead          time.Duration // the grace period of a dead voter; 0: hosts do not die for good
	Unhealthy     time.Duration // the grace period of an unhealthy voter, only if Dead is set; 0: it is not replaced
	PerDay        int           // maximum number of replacements per day
	LostAt        time.Duration // when quorum is lost for good; 0: never
	LateVoter     bool          // a voter that was believed lost returns with its data
	Resizes       bool          // operators resize the cluster
	Learner       bool          // the last host has the role learner
	Recalls       bool          // operators request interruptible maintenance
	Readdresses   bool          // operators change hosts' peer URLs
	Corrupts      bool          // the data of voters may become corrupt
	CleanFor      time.Duration // how long a host must be healthy after its first ejection before it joins again
	configs       []config.Config
}

// The agents' directories, which exist only as paths of simulated files.
const (
	stateDir   = "/var/lib/quorumd"
	runtimeDir = "/run/quorumd"
)

// newPlan draws a plan from the seed.
func newPlan(opt Options) (plan, error) {
	seed := opt.Seed
	r := rand.New(rand.NewPCG(seed, 1))
	p := plan{Seed: seed, Voters: 3, Faulty: opt.Faulty, LearnerRate: fullRate, CleanFor: 10 * time.Minute}
	if r.IntN(3) == 0 {
		p.Voters = 5
	}
	p.Hosts = p.Voters + r.IntN(8-p.Voters)
	if p.Hosts > p.Voters {
		p.Standbys = r.IntN(2)
	}
	if r.IntN(2) == 0 {
		p.Load = uint64(1 + r.IntN(200))
	}
	if r.IntN(3) == 0 {
		p.LearnerRate = 500 + p.Load*2
	}
	p.FaultInterval = time.Duration(2+r.IntN(12)) * time.Minute
	p.Fresh = r.IntN(4) == 0
	p.Timing = timingSection(r.IntN(20))
	p.Intruders = r.IntN(3) == 0
	if r := rand.New(rand.NewPCG(seed, 3)); r.IntN(3) == 0 && p.Hosts > p.Voters {
		p.Dead, p.PerDay = time.Duration(4+3*r.IntN(3))*time.Minute, 2+7*r.IntN(2)
		if r.IntN(2) == 0 {
			p.Unhealthy = time.Duration(5+5*r.IntN(3)) * time.Minute
		}
	}
	if r := rand.New(rand.NewPCG(seed, 5)); r.IntN(4) == 0 {
		p.LostAt, p.LateVoter = opt.Faulty/5+time.Duration(r.Int64N(int64(opt.Faulty/2)+1)), r.IntN(2) == 0
	}
	if opt.trouble != nil || opt.Mistake.trouble != nil { // these runs have their own faults
		p.LostAt = 0
	}
	if opt.Mistake.trouble != nil {
		p.Voters, p.Hosts, p.Standbys, p.Fresh, p.Faulty = 5, 7, 0, false, time.Hour
		p.Dead, p.PerDay, p.Timing, p.Unhealthy = 6*time.Minute, 1, timingSection(19), opt.Mistake.unhealthy
	}
	p.Resizes, p.Recalls, p.Readdresses = p.drawResizes(), p.drawRecalls(), p.drawReaddresses()
	p.Corrupts = p.drawCorrupts()
	if opt.plan != nil {
		opt.plan(&p)
	}
	for i := range p.Hosts {
		c, err := config.Parse("simulated", []byte(p.yaml(i)))
		if err != nil {
			return plan{}, fmt.Errorf("cannot parse the configuration of host %d: %w", i, err)
		}
		p.configs = append(p.configs, c)
	}
	return p, nil
}

func (p plan) config(host int) config.Config { return p.configs[host] }
func (p plan) timing() config.Timing         { return p.configs[0].Timing }

// timingSection returns one of the simulated timings: the defaults, the defaults with the longest interval that they
// allow, or longer times. With longer times an hour has fewer rounds to simulate, and more faults overlap with each
// wait.
func timingSection(drawn int) string {
	switch {
	case drawn < 1:
		return "{}"
	case drawn < 3:
		return "{interval: 5s}"
	case drawn < 10:
		return "{interval: 10s, renewEvery: 10s, renewGiveUp: 25s, lockTTL: 50s, stepMargin: 8s, callTimeout: 3s}"
	}
	return "{interval: 20s, renewEvery: 20s, renewGiveUp: 45s, lockTTL: 90s, stepMargin: 15s, callTimeout: 5s, " +
		"hostRecordTTL: 100s}"
}

// yaml returns a host's configuration. Direct writes to the disk are measured less often than by default. Fewer samples
// determine the health state, so it changes sooner.
func (p plan) yaml(host int) string {
	var endpoints []string
	for i := range p.Hosts {
		endpoints = append(endpoints, fmt.Sprintf("%q", fmt.Sprintf("http://10.0.0.%d:2379", i+1)))
	}
	role := config.RoleMember
	if p.isLearner(host) {
		role = config.RoleLearner
	}
	return fmt.Sprintf(`mode: manage
host: {name: n%[1]d, id: host-%[1]d, domain: rack-%[2]d, role: %[10]s}
cluster: {name: sim, voters: %[3]d, standbys: %[4]d, endpoints: [%[5]s]}
etcd: {clientURL: "http://10.0.0.%[1]d:2379", peerURL: "http://10.0.0.%[1]d:2380",
  environment: {ETCD_MAX_LEARNERS: "%[11]d"}}
disk: {directInterval: 5s, walInterval: 10s, qualifySamples: 60, window: 20}
paths: {state: %[6]s, runtime: %[7]s}
timing: %[8]s
%[9]s`, host+1, host%3, p.Voters, p.Standbys, strings.Join(endpoints, ", "), stateDir, runtimeDir, p.Timing,
		p.repairSection(), role, p.maxLearners())
}

// isLearner reports whether a host has the role learner.
func (p plan) isLearner(host int) bool { return p.Learner && host == p.Hosts-1 }

// maxLearners returns etcd's limit on learners: one, or two if the plan has a permanent learner.
func (p plan) maxLearners() int {
	if p.Learner {
		return 2
	}
	return 1
}

// repairSection returns the repair section of the configuration.
func (p plan) repairSection() string {
	if p.Dead == 0 {
		return ""
	}
	unhealthy := "off"
	if p.Unhealthy > 0 {
		unhealthy = p.Unhealthy.String()
	}
	return fmt.Sprintf("repair: {dead: %s, unhealthy: %s, maxPerDay: %d, cleanFor: %s}\n", p.Dead, unhealthy,
		p.PerDay, p.CleanFor)
}

// String returns the scenario.
func (p plan) String() string {
	lost := ""
	if p.LostAt > 0 {
		lost = fmt.Sprintf(", quorum is lost after %s, one of the lost voters returns: %v", p.LostAt, p.LateVoter)
	}
	if p.Resizes {
		lost += ", the cluster is resized"
	}
	if p.Learner {
		lost += ", the last host has the role learner"
	}
	if p.Readdresses {
		lost += ", peer URLs change"
	}
	if p.Corrupts {
		lost += ", data becomes corrupt"
	}
	if p.Recalls {
		lost += ", maintenance is interruptible"
	}
	return fmt.Sprintf("%d hosts for %d voters and %d standbys, load %d/s, a fault every %s for %s%s, timing %s %s",
		p.Hosts, p.Voters, p.Standbys, p.Load, p.FaultInterval, p.Faulty, lost, p.Timing, p.repairSection())
}
