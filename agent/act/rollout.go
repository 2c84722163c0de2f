// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/lock"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// rolledOut gives the rollout as it is once this host's operation has ended, to be written with that
// end. A host that did not come back as it should stops the rollout.
func (a *Actor) rolledOut(r *round.Round, step policy.Step) []lock.Extra {
	k := r.Request
	if r.Rollout == nil || k == nil || !r.TakesDown(a.opt.Config.Host.ID) ||
		r.Rollout.ID != k.Rollout {
		return nil
	}
	next := *r.Rollout
	next.Hosts = slices.Clone(next.Hosts)
	i := slices.IndexFunc(next.Hosts, func(h record.RolloutHost) bool { return h.ID == a.opt.Config.Host.ID })
	if i < 0 {
		return nil
	}
	own, _ := r.Membership.ByPeerURL(a.opt.Config.Etcd.PeerURL)
	h, others := &next.Hosts[i], len(next.Waiting())
	if h.State == record.HostWaiting {
		others--
	}
	end := policy.RolloutAfter(policy.RolloutProgress{
		Host: h.Name, Goes: policy.RolloutState(next.State).Goes(),
		Waiting: others, Wants: next.Etcd, Runs: r.Statuses[own.ID].Version, Member: own.ID != 0,
	}, step)
	switch {
	case end.HostDone:
		h.State, h.Seconds = record.HostDone, took(r).Seconds()
		h.Turn = max(h.Seconds, turn(next, r.Wall).Seconds())
		next.Since = r.Wall.UTC()
		if end.Done {
			next.State, next.Text = record.RolloutDone, ""
		}
	case end.Stopped != "":
		next.State, next.Text = record.RolloutStopped, end.Stopped
	default:
		return nil // it is asked for still
	}
	value, err := record.Encode(next)
	if err != nil {
		a.log.Error("rollout stopped: its progress cannot be saved", "error", err)
		value = unended(next, i, err)
	}
	return []lock.Extra{{Key: a.keys.Rollout(), At: r.RolloutAt, Value: value}}
}

// took gives how long this host's own operation has lasted, for people. The clock of the boot in which it began ended
// with it: across a reboot the wall clock tells.
func took(r *round.Round) time.Duration {
	if r.View.Op.SameBoot {
		return r.View.Op.Elapsed
	}
	return max(r.Wall.Sub(r.Op.Started), r.View.Op.Elapsed)
}

// turn gives how long a rollout has been at the host that it is at, for people: hosts' clocks may differ. 0 when it
// cannot be told.
func turn(rollout record.Rollout, now time.Time) time.Duration {
	if rollout.Since.IsZero() { // of an agent that does not write it
		return 0
	}
	return now.Sub(rollout.Since)
}

// unended gives the record of a rollout, stopped, of which the full one cannot be written: there was room for it when
// it was started, so somebody else has written it since. It lists one host only, the one that is done.
func unended(r record.Rollout, host int, why error) []byte {
	short := record.Rollout{
		ID: r.ID, Work: r.Work, By: r.By, State: record.RolloutStopped, Started: r.Started, Since: r.Since,
		Resumed: r.Resumed,
		Text: fmt.Sprintf("progress could not be saved after %s, of %d hosts: %v", r.Hosts[host].Name,
			len(r.Hosts), why),
		Hosts: []record.RolloutHost{r.Hosts[host]},
	}
	value, err := record.Encode(short)
	if err != nil { // of names that nobody could read
		value, _ = record.Encode(record.Rollout{State: record.RolloutStopped, Text: short.Text})
	}
	return value
}
