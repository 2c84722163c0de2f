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

// Made describes the result of the survivor's data.
type Made struct {
	Plan    string          `json:"plan"`
	Cluster record.MemberID `json:"clusterID"`
	Member  record.MemberID `json:"memberID"`
	Before  int64           `json:"revisionBefore"` // the highest revision with all of the log applied
	After   int64           `json:"revisionAfter"`  // from which the cluster continues
}

// Plan says what each host does.
type Plan struct {
	Version  int             `json:"version"`
	ID       string          `json:"id"`
	Cluster  string          `json:"cluster"` // its name
	Made     time.Time       `json:"made"`
	Old      record.MemberID `json:"oldClusterID"`
	New      record.MemberID `json:"newClusterID"`
	Survivor string          `json:"survivor"` // host ID
	Facts    []Facts         `json:"facts"`
	Gone     []string        `json:"gone"` // voters that are gone for good, by name or ID
	// survivors of earlier plans that the operator keeps stopped, by name
	KeptOff  []string  `json:"keptOff,omitempty"`
	Snapshot *Snapshot `json:"snapshot,omitempty"` // what the survivor starts from, instead of its data
	Checksum string    `json:"checksum"`
}

// planIDLength is the length of a plan's ID.
const planIDLength = 12

// PlanID reports whether id is valid as the ID of a plan: it is part of a file's name.
func PlanID(id string) bool {
	return len(id) == planIDLength && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// Choice is what the operator decides.
type Choice struct {
	Cluster  string   // its name, as typed
	Gone     []string // voters that are gone for good, by name or ID
	KeptOff  []string // survivors of earlier plans that never start again with their data, by name
	Survivor string   // another host than the most advanced, by name; empty for that
	At       time.Time
	ID       string // of the plan
	New      record.MemberID
	Snapshot *Snapshot // what to start from if no host has data; nil for the survivor's data
}

// Loss describes what the cluster would lose with one host as the survivor.
type Loss struct {
	Facts  Facts
	Behind uint64 // entries that the most advanced host has beyond this one's; at least one if this one's term is older
	Chosen bool
	No     string // why it cannot be the survivor
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

// NewPlan makes the plan, or returns why there is none.
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
		p.Old = w.Snapshot.before(all)
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

// ReadPlan reads what quorumctl recover plan has written.
func ReadPlan(r io.Reader) (Plan, error) {
	var p Plan
	if err := decode(r, &p); err != nil {
		return p, fmt.Errorf("cannot read the plan: %w", err)
	}
	return p, p.check()
}

// check returns what is wrong with a plan from a file.
func (p Plan) check() error {
	sum := p.Checksum
	p.Checksum = ""
	switch {
	case p.Version != Version:
		return fmt.Errorf("cannot read the plan: it is of version %d, this one knows %d", p.Version, Version)
	case sum != checksum(p):
		return errors.New("cannot read the plan: the checksum does not fit, the file was changed")
	case !PlanID(p.ID) || p.New == 0 || p.New == p.Old || len(p.Facts) == 0 || len(p.Facts) > policy.MaxRecoveryHosts:
		return errors.New("cannot read the plan: the file is not a plan")
	case p.Of(p.Survivor) == nil || p.Snapshot == nil && (p.Of(p.Survivor).Log.Empty || p.Old == 0):
		return errors.New("cannot read the plan: it has no facts of its survivor")
	case p.Snapshot != nil && p.Snapshot.check() != nil:
		return fmt.Errorf("cannot read the plan: %w", p.Snapshot.check())
	}
	for _, f := range p.Facts {
		if f.Checksum != f.Sealed().Checksum {
			return fmt.Errorf("cannot read the plan: the facts of %s were changed", f.Host)
		}
	}
	return nil
}

// Of returns the facts of a host; nil if the plan has none.
func (p Plan) Of(hostID string) *Facts {
	for i := range p.Facts {
		if p.Facts[i].HostID == hostID {
			return &p.Facts[i]
		}
	}
	return nil
}

// Refused returns why the host with these current facts does not obey the plan, or "".
func (p Plan) Refused(now Facts, at time.Time) string {
	shown := policy.OfferedPlan{ID: p.ID, Cluster: p.Cluster, Age: at.Sub(p.Made), Now: now.remains(at)}
	if own := p.Of(now.HostID); own != nil {
		of := own.remains(at)
		shown.Own = &of
	}
	return policy.PlanRefused(shown)
}
