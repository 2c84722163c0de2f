// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// Result describes the cluster that was made from the survivor's data or from a snapshot.
type Result struct {
	Plan    string          `json:"plan"`
	Cluster record.MemberID `json:"clusterID"`
	Member  record.MemberID `json:"memberID"`
	Before  int64           `json:"revisionBefore"` // the highest revision once the whole log is applied
	After   int64           `json:"revisionAfter"`  // the new cluster continues from this revision
}

// Plan defines the new cluster and its survivor. It includes the facts that it was made from.
type Plan struct {
	Version  int             `json:"version"`
	ID       string          `json:"id"`
	Cluster  string          `json:"cluster"` // name of the cluster
	Made     time.Time       `json:"made"`
	Old      record.MemberID `json:"oldClusterID"`
	New      record.MemberID `json:"newClusterID"`
	Survivor string          `json:"survivor"` // host ID
	Facts    []Facts         `json:"facts"`
	Gone     []string        `json:"gone"` // voters that are gone for good, by name or ID
	// KeptOff lists the survivors of earlier plans that the operator keeps stopped, by name.
	KeptOff  []string  `json:"keptOff,omitempty"`
	Snapshot *Snapshot `json:"snapshot,omitempty"` // the survivor starts from this snapshot instead of its data
	Checksum string    `json:"checksum"`
}

// planIDLength is the length of a plan's ID.
const planIDLength = 12

// IsPlanID reports whether id is valid as the ID of a plan, which becomes a part of file names.
func IsPlanID(id string) bool {
	return len(id) == planIDLength && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// Choice holds the operator's decisions.
type Choice struct {
	Cluster  string   // the cluster's name, as the operator typed it
	Gone     []string // voters that are gone for good, by name or ID
	KeptOff  []string // survivors of earlier plans that the operator keeps stopped, by name
	Survivor string   // name of the survivor; empty: the most advanced host
	At       time.Time
	ID       string // ID of the plan
	New      record.MemberID
	Snapshot *Snapshot // the snapshot to start from instead of the survivor's data; nil: none
}

// Loss describes what the cluster would lose with one host as the survivor.
type Loss struct {
	Facts Facts
	// Behind is how many entries the host's log is behind that of the most advanced host; at least 1 if its last term
	// is older. It is 0 if No is set.
	Behind uint64
	Chosen bool
	No     string // why the host cannot be the survivor; empty if it can
}

// Compare ranks the facts, the most advanced first.
func Compare(all []Facts) []Loss {
	out := make([]Loss, 0, len(all))
	for _, s := range policy.RankHosts(remainsOf(all, time.Time{})) {
		out = append(out, Loss{all[s.Index], s.Behind, s.Chosen, s.Excluded})
	}
	return out
}

// Missing returns the voters without facts.
func Missing(all []Facts) []Member {
	var out []Member
	for _, m := range policy.RecoveryMissing(remainsOf(all, time.Time{})) {
		out = append(out, Member{ID: record.MemberID(m.ID), Name: m.Name, PeerURL: m.PeerURL})
	}
	return out
}

// clusterOf returns the cluster ID of the first host with data.
func clusterOf(all []Facts) record.MemberID {
	for _, f := range all {
		if !f.Log.Empty {
			return f.Log.Cluster
		}
	}
	return 0
}

// NewPlan returns the plan, or an error with the reason why none can be made.
func NewPlan(all []Facts, w Choice) (Plan, error) {
	decided := policy.PlanRecovery(remainsOf(all, w.At), policy.RecoveryChoice{
		Cluster: w.Cluster, Gone: w.Gone, KeptOff: w.KeptOff, Survivor: w.Survivor, Snapshot: w.Snapshot != nil,
	})
	if decided.Doubt != nil {
		return Plan{}, fmt.Errorf("cannot plan the recovery: %s", decided.Doubt)
	}
	host := all[decided.Survivor]
	p := Plan{
		Version: Version, ID: w.ID, Cluster: w.Cluster, Made: w.At.UTC(), Old: host.Log.Cluster, New: w.New,
		Survivor: host.HostID, Facts: all, Gone: orEmpty(w.Gone), KeptOff: w.KeptOff,
		Snapshot: w.Snapshot,
	}
	if w.Snapshot != nil {
		p.Old = w.Snapshot.oldCluster(all)
	}
	p.Checksum = checksum(p)
	return p, p.check()
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// ReadPlan reads the output of quorumctl recover plan.
func ReadPlan(r io.Reader) (Plan, error) {
	var p Plan
	if err := decode(r, &p); err != nil {
		return p, fmt.Errorf("cannot read the plan: %w", err)
	}
	return p, p.check()
}

// check returns an error if the plan is invalid.
func (p Plan) check() error {
	sum := p.Checksum
	p.Checksum = ""
	switch {
	case p.Version != Version:
		return fmt.Errorf("cannot read the plan: it has version %d, but this quorumd supports %d", p.Version, Version)
	case sum != checksum(p):
		return errors.New("cannot read the plan: checksum mismatch: the file was changed")
	case !IsPlanID(p.ID) || p.New == 0 || p.New == p.Old || len(p.Facts) == 0 || len(p.Facts) > policy.MaxRecoveryHosts:
		return errors.New("cannot read the plan: the file is not a plan")
	case p.FactsOf(p.Survivor) == nil || p.Snapshot == nil && (p.FactsOf(p.Survivor).Log.Empty || p.Old == 0):
		return errors.New("cannot read the plan: it has no facts about its survivor")
	case p.Snapshot != nil && p.Snapshot.check() != nil:
		return fmt.Errorf("cannot read the plan: %w", p.Snapshot.check())
	}
	for _, f := range p.Facts {
		if f.Checksum != f.Sealed().Checksum {
			return fmt.Errorf("cannot read the plan: the facts about %s were changed", f.Host)
		}
	}
	return nil
}

// FactsOf returns the facts about a host; nil if the plan has none.
func (p Plan) FactsOf(hostID string) *Facts {
	for i := range p.Facts {
		if p.Facts[i].HostID == hostID {
			return &p.Facts[i]
		}
	}
	return nil
}

// Refused returns why the host with these current facts refuses the plan; "" if it accepts it.
func (p Plan) Refused(now Facts, at time.Time) string {
	shown := policy.OfferedPlan{ID: p.ID, Cluster: p.Cluster, Age: at.Sub(p.Made), Now: now.remains(at)}
	if own := p.FactsOf(now.HostID); own != nil {
		of := own.remains(at)
		shown.Own = &of
	}
	return policy.PlanRefused(shown)
}
