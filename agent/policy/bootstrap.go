// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"iter"
	"strings"
)

// bootstrap creates a new single-member cluster, once, on the request of an operator or of an automatic bootstrap. The
// request ends if a cluster answers, or if this host has ever belonged to a cluster. Until etcd has created its data
// here, the request also ends if a cluster has ever answered this host, or if another listed host has a cluster or
// takes precedence.
func bootstrap(v View) (Decision, bool) {
	if !v.Bootstrap.Requested {
		return Decision{}, false
	}
	if v.Cluster.Reachable {
		outcome := ClusterExists
		if roleOf(v) == RoleVoter {
			outcome = Joined
		}
		return do(Step{Kind: StepFinishBootstrap, Outcome: outcome}), true
	}
	if v.Cluster.Listed {
		return waitForCluster(v), true // a cluster has just answered, so none is created
	}
	if v.Bootstrap.Done {
		return do(Step{
			Kind: StepFinishBootstrap, Outcome: ClusterExists,
			Why: "this host has belonged to a cluster before",
		}), true
	}
	if v.Data.State == DataMember { // quorumd created this data before a crash
		if r, holds := vetoed(v, vetoVersionUnknown, vetoVersionUnsafe); holds {
			return Decision{Reasons: []Reason{r}}, true
		}
		// an operator stopped etcd: after a crash the unit would be failed, and after a reboot it would not have run
		if v.Unit.State == UnitInactive && v.Unit.Ran {
			return stopped(v), true
		}
		return bringUp(v), true
	}
	if v.Bootstrap.LastCluster != 0 {
		return do(Step{
			Kind: StepFinishBootstrap, Outcome: ClusterExists,
			Why: fmt.Sprintf("this host has seen cluster %x", v.Bootstrap.LastCluster),
		}), true
	}
	if v.Data.State == DataRemains {
		return wait(DataUnusable,
			"etcd exited during its first start, before it became a member: check its log, and move its leftover "+
				"data away"), true
	}
	if d, waits := askListed(v); waits {
		return d, true
	}
	if r, holds := vetoed(v, vetoHostConflict, vetoVersionUnknown, vetoVersionUnsafe, vetoVersionUntested,
		vetoHealthUnknown,
		vetoNotQualified, vetoHealthBad, vetoSpaceLow, vetoUnitUnusable, vetoDataUnusable); holds {
		return Decision{Reasons: []Reason{r}}, true
	}
	if !v.Unit.EnvReady && (v.Unit.State == UnitInactive || v.Unit.State == UnitFailed) {
		return do(Step{Kind: StepWriteEnv}), true
	}
	return bringUp(v), true
}

// AgainstBootstrap returns why an operator may not create a new cluster on this host, or nil: any sign of an existing
// cluster forbids it. The texts name dataDir and seenPath, the file that records which cluster this host has seen.
func AgainstBootstrap(v View, dataDir, seenPath string) *Refusal {
	switch {
	case v.Self.Mode != Manage:
		return conflicts(ModeObserve, "quorumd only observes", "set mode: manage and reload quorumd")
	case v.Self.Learner:
		return conflicts(LearnerOnly, "host.role is learner, and the first member of a cluster is a voter",
			"create the cluster on another host, or remove host.role here")
	case v.Cluster.Listed:
		return conflicts(ClusterExists, "a cluster answers already",
			"no action needed: this host joins it; see quorumctl explain")
	case v.Bootstrap.Done:
		return conflicts(ClusterExists, fmt.Sprintf("this host has belonged to cluster %x", v.Cluster.ExpectedID),
			"bring that cluster back; quorumd creates no new one on an empty disk")
	case v.Bootstrap.LastCluster != 0:
		return conflicts(ClusterExists,
			fmt.Sprintf("this host has seen cluster %x, which does not answer now", v.Bootstrap.LastCluster),
			"bring that cluster back, and this host joins it; only if it is gone for good, remove "+seenPath+
				" and restart quorumd")
	case v.BootstrapAttempt.Attempt != "" && v.BootstrapAttempt.First != v.Self.Name:
		return conflicts(ClusterExists,
			"this host is committed to the attempt of "+v.BootstrapAttempt.First+" to create the cluster",
			"quorumctl explain shows what the attempt waits for; this host joins that cluster")
	case v.BootstrapAttempt.clusterElsewhere(v.Self.Name) != "":
		return conflicts(ClusterExists, v.BootstrapAttempt.clusterElsewhere(v.Self.Name),
			"no action needed: this host joins that cluster; see quorumctl explain")
	case v.Data.State == DataUnknown:
		return &Refusal{
			NotNow, Starting, v.Data.unread(),
			"try again in a few seconds",
		}
	case v.Data.State != DataEmpty:
		if text, stray := strayDefault(v); stray {
			return conflicts(DefaultCluster, text,
				"if nothing was stored in it, stop etcd and rename the directory "+dataDir+"/member")
		}
		return conflicts(ClusterExists, "there is data in "+dataDir,
			"start etcd on it, or move it away if it is not needed")
	}
	return nil
}

// BootstrapAttempt is this host's view of a bootstrap by the hosts in bootstrap.hosts, according to its disk and their
// answers. The zero value means that no hosts are listed.
//
// In an automatic bootstrap, only the first host of the list may create the cluster. Each of its attempts has a unique
// name. The first host starts etcd only after every other host has recorded on its disk a promise of this attempt. A
// host that has promised an attempt accepts no other, even if the first host loses its disk and begins a new one.
type BootstrapAttempt struct {
	List         string            // digest of the list
	First        string            // the first host of the list
	PromisedList string            // digest of the list that this host has recorded, or empty
	Attempt      string            // the attempt that this host has begun or promised, or empty
	OnRequest    bool              // no automatic bootstrap: a host with a request first asks the other listed hosts
	Others       []BootstrapAnswer // the answers of the other listed hosts, sorted by name
}

// BootstrapPhase is the progress of a bootstrap request on a host.
type BootstrapPhase string

// The phases. The zero value means that the host has neither a request nor a sign of a cluster.
const (
	BootstrapNone    BootstrapPhase = ""
	BootstrapAsking  BootstrapPhase = "asking"  // the host has a request, and asks the other listed hosts
	BootstrapDecided BootstrapPhase = "decided" // no other listed host has a cluster or a request: the host creates one
	BootstrapCluster BootstrapPhase = "cluster" // the host has data, belongs to a cluster, or has seen one
)

func (p BootstrapPhase) known() bool {
	return p == BootstrapNone || p == BootstrapAsking || p == BootstrapDecided || p == BootstrapCluster
}

// BootstrapAnswer is the answer of a listed host.
type BootstrapAnswer struct {
	Name         string
	Silent       string // why there is no current answer; empty if there is one
	Past         string // why the host is not new; empty if it is
	List         string // digest of the list in its configuration
	PromisedList string
	Attempt      string // the attempt that the host has begun or promised, or empty
	Phase        BootstrapPhase
	Asked        BootstrapPhase // the phase that the asking host published before it asked
}

// BootstrapNote is a change of this host's record of the bootstrap. The zero value changes nothing.
type BootstrapNote struct {
	Begin   bool   // this host begins an attempt
	Promise string // the attempt that this host promises
	Start   bool   // this host creates the cluster, because all listed hosts agree
	Decide  bool   // this host creates the cluster on request: no other listed host has a cluster or a request
}

// BootstrapAnswerOf returns this host's answer to the other listed hosts.
func BootstrapAnswerOf(v View) BootstrapAnswer {
	b := v.BootstrapAttempt
	return BootstrapAnswer{
		Name: v.Self.Name, Past: notNew(v), List: b.List, PromisedList: b.PromisedList, Attempt: b.Attempt,
		Phase: bootstrapPhase(v),
	}
}

// bootstrapPhase returns this host's phase. Data that this host created by its own decision counts as a cluster, too.
func bootstrapPhase(v View) BootstrapPhase {
	switch data := v.Data.State; {
	case v.Cluster.Listed || v.Cluster.Reachable || v.Cluster.Denied || v.Bootstrap.Done,
		v.Bootstrap.LastCluster != 0, data != DataEmpty && data != DataUnknown:
		return BootstrapCluster
	case v.Bootstrap.Decided:
		return BootstrapDecided
	case v.Bootstrap.Requested:
		return BootstrapAsking
	}
	return BootstrapNone
}

// notNew returns why this host does not count as a new host that can take part in a bootstrap; empty if it does.
// Anything unknown counts against it.
func notNew(v View) string {
	switch data := v.Data.State; {
	case v.Cluster.Listed || v.Cluster.Reachable || v.Cluster.Denied:
		return "a cluster answers it"
	case v.Bootstrap.Done:
		return "it has belonged to a cluster"
	case v.Bootstrap.LastCluster != 0:
		return fmt.Sprintf("it has seen cluster %x", v.Bootstrap.LastCluster)
	case v.Bootstrap.Requested:
		return "it creates a cluster"
	case v.Recovery != nil:
		return "it has a recovery plan"
	case data == DataUnknown:
		return "its data directory has not been read yet"
	case data == DataMember && hasDefaultData(v.Data.MemberID, v.Data.ClusterID):
		return "etcd created a default single-member cluster there"
	case data != DataEmpty:
		return "there is data in its data directory"
	case v.Unit.State != UnitInactive && v.Unit.State != UnitFailed && v.Unit.State != UnitMissing:
		return "its etcd is " + cmp.Or(string(v.Unit.State), "in an unknown state")
	case v.Self.Conflict != "":
		return "its identity conflicts with another host's: " + v.Self.Conflict
	case v.Self.Mode != Manage:
		return "its quorumd only observes"
	}
	return ""
}

// automaticBootstrap keeps a new host waiting until the listed hosts agree on which host creates the cluster. Without
// automatic bootstrap, the host waits only while another listed host has a cluster or a request. The attempt advances
// through noteBootstrapAttempt, without a step.
func automaticBootstrap(v View) (Decision, bool) {
	if v.BootstrapAttempt.List == "" || notNew(v) != "" {
		return Decision{}, false
	}
	if v.BootstrapAttempt.OnRequest {
		text := v.BootstrapAttempt.clusterElsewhere("")
		return wait(BootstrapWaiting, "%s; this host joins that cluster when it answers", text), text != ""
	}
	_, text := advanceAttempt(v)
	return wait(BootstrapWaiting, "%s", text), true
}

// noteBootstrapAttempt returns the change of this host's record of a bootstrap, automatic or on request.
func noteBootstrapAttempt(v View) BootstrapNote {
	if v.BootstrapAttempt.List != "" && v.Bootstrap.Requested {
		return BootstrapNote{Decide: awaitsAnswers(v) && v.BootstrapAttempt.judgeAnswers(v.Self.Name).decide}
	}
	if v.BootstrapAttempt.List == "" || v.BootstrapAttempt.OnRequest || notNew(v) != "" {
		return BootstrapNote{}
	}
	n, _ := advanceAttempt(v)
	return n
}

// awaitsAnswers reports whether this host's request waits for the answers of the other listed hosts.
func awaitsAnswers(v View) bool {
	return v.BootstrapAttempt.List != "" && v.Bootstrap.Requested && !v.Bootstrap.Decided &&
		bootstrapPhase(v) == BootstrapAsking
}

// answersResult is what a host with a request does according to the other listed hosts' answers: it creates the
// cluster, ends the request because another host creates the cluster, or waits.
type answersResult struct {
	decide  bool
	ended   string // why the request ends; empty if it does not
	waiting string // why the host waits
}

// clusterElsewhere reports, as text, that another listed host has a cluster, creates one, or has a request that takes
// precedence over the named host's request; empty if none does. If name is empty, any request takes precedence.
func (b BootstrapAttempt) clusterElsewhere(name string) string {
	for _, a := range b.Others {
		switch {
		case a.Silent != "" || a.List != b.List:
		case a.Phase == BootstrapCluster:
			return a.Name + " is not new: " + cmp.Or(a.Past, "it has data or has seen a cluster")
		case a.Phase == BootstrapDecided:
			return a.Name + " creates the cluster"
		case a.Phase == BootstrapAsking && (name == "" || a.Name < name):
			return "bootstrap was requested on " + a.Name
		}
	}
	return ""
}

// judgeAnswers returns the result for the named host. Each host publishes its request before it asks the others, so of
// two hosts that ask at the same time, at least one reads the other's request. The host with the later name ends its
// own request. A host creates the cluster only if no answer reports data or a request. If there is any doubt, it waits.
func (b BootstrapAttempt) judgeAnswers(name string) answersResult {
	if text := b.clusterElsewhere(name); text != "" {
		return answersResult{ended: text}
	}
	var doubts []string
	for _, a := range b.Others {
		switch {
		case a.Asked != BootstrapAsking:
			doubts = append(doubts, a.Name+" has not been asked since this host received the request")
		case a.Silent != "" || a.List != b.List:
			doubts = append(doubts, b.objection(a))
		case a.Phase == BootstrapAsking:
			doubts = append(doubts, "bootstrap was requested on "+a.Name+" too, and its name sorts later")
		case a.Attempt != "" && a.Attempt != b.Attempt:
			doubts = append(doubts, a.Name+" is committed to another attempt: a cluster may exist")
		case a.Past != "" || !a.Phase.known():
			doubts = append(doubts, a.Name+" is not new: "+cmp.Or(a.Past, "its phase "+string(a.Phase)+" is unknown"))
		}
	}
	if len(b.Others) == 0 {
		doubts = []string{"the other listed hosts have not been asked yet"}
	}
	if len(doubts) > 0 {
		return answersResult{
			waiting: "this host creates the cluster once no other listed host has a cluster or a request for one: " +
				strings.Join(doubts, "; "),
		}
	}
	return answersResult{decide: true, waiting: "no other listed host has a cluster or a request for one"}
}

// askListed waits for the other listed hosts' answers before a requested cluster is created, and ends the request if
// another host has a cluster or takes precedence. It returns false if this host's disk records the decision to create
// the cluster, or if no hosts are listed.
func askListed(v View) (Decision, bool) {
	if !awaitsAnswers(v) {
		return Decision{}, false
	}
	switch a := v.BootstrapAttempt.judgeAnswers(v.Self.Name); {
	case a.ended != "":
		return do(Step{Kind: StepFinishBootstrap, Outcome: ClusterExists, Why: a.ended}), true
	default: // wait even if a.decide is set: the disk must record the decision before etcd starts
		return wait(BootstrapWaiting, "%s", a.waiting), true
	}
}

// advanceAttempt returns the next change of a new host's record of the automatic bootstrap, and the text of the reason
// to wait. If there is any doubt, the host waits.
func advanceAttempt(v View) (BootstrapNote, string) {
	b := v.BootstrapAttempt
	if b.PromisedList != "" && b.PromisedList != b.List {
		return BootstrapNote{}, "this host is committed to a different list of hosts than bootstrap.hosts has now"
	}
	if v.Self.Name != b.First {
		return followFirst(b)
	}
	if b.Attempt == "" {
		return BootstrapNote{Begin: true}, "this host begins an attempt to create the cluster"
	}
	var doubts []string
	for _, a := range b.Others {
		if text := b.objection(a); text != "" {
			doubts = append(doubts, text)
		} else if a.Attempt == "" {
			doubts = append(doubts, a.Name+" has not committed to this attempt yet")
		} else if a.Attempt != b.Attempt || a.PromisedList != b.List {
			doubts = append(doubts, a.Name+" is committed to an earlier attempt: a cluster may exist")
		}
	}
	if len(b.Others) == 0 {
		doubts = []string{"the other listed hosts have not been asked yet"}
	}
	if len(doubts) > 0 {
		return BootstrapNote{}, "this host creates the cluster when all others agree: " + strings.Join(doubts, "; ")
	}
	return BootstrapNote{Start: true}, "all others agree; this host creates the cluster"
}

// followFirst is advanceAttempt for a host that is not the first of the list.
func followFirst(b BootstrapAttempt) (BootstrapNote, string) {
	for _, a := range b.Others {
		if a.Name != b.First {
			continue
		}
		switch text := b.objection(a); {
		case b.Attempt == "" && text != "":
			return BootstrapNote{}, a.Name + " creates the cluster when all listed hosts agree; this host has " +
				"not committed to it yet: " + text
		case b.Attempt == "" && (a.Attempt == "" || a.PromisedList != b.List):
			return BootstrapNote{}, a.Name + " has not begun to create the cluster yet"
		case b.Attempt == "":
			return BootstrapNote{Promise: a.Attempt}, a.Name + " creates the cluster; this host is committed to it"
		case text == "" && a.Attempt != b.Attempt:
			return BootstrapNote{}, a.Name +
				" begins a new attempt, but this host is committed to its earlier one: a cluster may exist"
		}
	}
	return BootstrapNote{}, b.First + " creates the cluster when all listed hosts agree; this host is committed to it"
}

// objection returns why a host does not count as a new host with the same list; empty if it does.
func (b BootstrapAttempt) objection(a BootstrapAnswer) string {
	switch {
	case a.Silent != "":
		return a.Name + " does not answer: " + a.Silent
	case a.List != b.List:
		return a.Name + " has a different cluster.name or bootstrap.hosts"
	case a.Past != "":
		return a.Name + " is not new: " + a.Past
	}
	return ""
}

// AgainstAutomaticBootstrap returns why an etcd may run at another endpoint, or nil if it is certain that none does.
// refuses reports whether an error means that the endpoint refused the connection. others yields each endpoint with the
// result of connecting to it, which is nil if the connection was accepted. Every endpoint must refuse the connection,
// because a silent endpoint may hide a cluster. missing is an error that may have made the list of endpoints
// incomplete, or nil.
func AgainstAutomaticBootstrap(others iter.Seq2[string, error], missing error, refuses func(error) bool) *Refusal {
	if missing != nil {
		return conflicts(ClusterExists, "endpoints of an existing cluster may be missing: "+missing.Error(),
			"correct cluster.discovery, or wait until it answers; without it, cluster.endpoints must name all hosts")
	}
	for endpoint, err := range others {
		switch {
		case err == nil:
			return conflicts(ClusterExists, "something answers at "+endpoint,
				"check whether a cluster runs there without a quorum; correct cluster.endpoints if it is not etcd")
		case !refuses(err):
			return conflicts(ClusterExists, "it is not known whether a cluster runs at "+endpoint+": "+err.Error(),
				"bring that host up, or leave it out of cluster.endpoints until it is up")
		}
	}
	return nil
}
