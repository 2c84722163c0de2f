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

// Made is what was made of the survivor's data.
type Made struct {
	Plan    string          `json:"plan"`
	Cluster record.MemberID `json:"clusterID"`
	Member  record.MemberID `json:"memberID"`
	Before  int64           `json:"revisionBefore"` // the revision that was reached, with all of the log
	After   int64           `json:"revisionAfter"`  // from which the cluster goes on
}

// Plan is what each of the hosts is to do.
type Plan struct {
	Version  int             `json:"version"`
	ID       string          `json:"id"`
	Cluster  string          `json:"cluster"` // its name
	Made     time.Time       `json:"made"`
	Old      record.MemberID `json:"oldClusterID"`
	New      record.MemberID `json:"newClusterID"`
	Survivor string          `json:"survivor"` // host ID
	Facts    []Facts         `json:"facts"`
	Gone     []string        `json:"gone"`               // voters that are not coming back, by name or ID
	KeptOff  []string        `json:"keptOff,omitempty"`  // survivors of earlier plans that people keep off, by name
	Snapshot *Snapshot       `json:"snapshot,omitempty"` // with which the survivor goes on, instead of its data
	Checksum string          `json:"checksum"`
}

// planIDLength is that of a plan's ID.
const planIDLength = 12

// PlanID tells whether that can be the ID of a plan: it is part of a file's name.
func PlanID(id string) bool {
	return len(id) == planIDLength && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// Wish is what the operator says.
type Wish struct {
	Cluster  string   // its name, as it was typed
	Gone     []string // voters that are gone for good, by name or ID
	KeptOff  []string // survivors of earlier plans that never start again as they are, by name
	Survivor string   // another host than the most advanced, by name; empty for that
	At       time.Time
	ID       string // of the plan
	New      record.MemberID
	Snapshot *Snapshot // to go on with, where nobody has data; nil for the data of the survivor
}

// Loss is what one host would bring back.
type Loss struct {
	Facts  Facts
	Behind uint64 // entries that the most advanced has beyond it; at least one where its term is older
	Chosen bool
	No     string // why it cannot be the survivor
}

// Compare puts the facts side by side, the most advanced first.
func Compare(all []Facts) []Loss {
	out := make([]Loss, 0, len(all))
	for _, s := range policy.RankHosts(remainsOf(all, time.Time{})) {
		out = append(out, Loss{all[s.Place], s.Behind, s.Chosen, s.No})
	}
	return out
}

// Missing gives the voters of which there are no facts.
func Missing(all []Facts) []Member {
	var out []Member
	for _, m := range policy.RecoveryMissing(remainsOf(all, time.Time{})) {
		out = append(out, Member{ID: record.MemberID(m.ID), Name: m.Name, PeerURL: m.PeerURL})
	}
	return out
}

// clusterOf gives the ID of the cluster that the first data are of.
func clusterOf(all []Facts) record.MemberID {
	for _, f := range all {
		if !f.Log.Empty {
			return f.Log.Cluster
		}
	}
	return 0
}

// NewPlan makes the plan, or says why there is none.
func NewPlan(all []Facts, w Wish) (Plan, error) {
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

// check tells what is wrong with a plan that came from elsewhere.
func (p Plan) check() error {
	sum := p.Checksum
	p.Checksum = ""
	switch {
	case p.Version != Version:
		return fmt.Errorf("cannot read the plan: it is of version %d, this one knows %d", p.Version, Version)
	case sum != checksum(p):
		return errors.New("cannot read the plan: the checksum does not fit, the file was changed")
	case !PlanID(p.ID) || p.New == 0 || p.New == p.Old || len(p.Facts) == 0 || len(p.Facts) > policy.MaxRecoveryHosts:
		return errors.New("cannot read the plan: it is none")
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

// Of gives the facts of a host; nil when the plan has none.
func (p Plan) Of(hostID string) *Facts {
	for i := range p.Facts {
		if p.Facts[i].HostID == hostID {
			return &p.Facts[i]
		}
	}
	return nil
}

// Refused tells why the host with these facts, which were taken just now, does not obey the plan; or nothing.
func (p Plan) Refused(now Facts, at time.Time) string {
	shown := policy.OfferedPlan{ID: p.ID, Cluster: p.Cluster, Age: at.Sub(p.Made), Now: now.remains(at)}
	if own := p.Of(now.HostID); own != nil {
		of := own.remains(at)
		shown.Own = &of
	}
	return policy.PlanRefused(shown)
}
