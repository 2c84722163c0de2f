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

// rolloutWrites returns the write that updates the rollout in the transaction that ends this host's operation, or
// nothing if the rollout does not change. If the operation failed, its request was cancelled, or the host came back
// with the wrong etcd version, the write stops the rollout.
func (a *Actor) rolloutWrites(r *round.Round, step policy.Step) []lock.Extra {
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
	own, _ := r.OwnMember(r.Membership, a.opt.Config.Etcd.PeerURL)
	h, others := &next.Hosts[i], len(next.Waiting())
	if h.State == record.HostWaiting {
		others--
	}
	end := policy.RolloutAfter(policy.RolloutProgress{
		Host: h.Name, Ongoing: policy.RolloutState(next.State).Ongoing(),
		Waiting: others, Wants: next.Etcd, Runs: r.Statuses[own.ID].Version, Member: own.ID != 0,
	}, step)
	switch {
	case end.HostDone:
		h.State, h.Seconds = record.HostDone, took(r).Seconds()
		h.Turn = max(h.Seconds, timeAtHost(next, r.Wall).Seconds())
		next.Since = r.Wall.UTC()
		if end.Done {
			next.State, next.Text = record.RolloutDone, ""
		}
	case end.Stopped != "":
		next.State, next.Text = record.RolloutStopped, end.Stopped
	default:
		return nil // the host's request stays, so the rollout does not move on
	}
	value, err := record.Encode(next)
	if err != nil {
		a.log.Error("rollout stopped: its progress cannot be saved", "error", err)
		value = stoppedRollout(next, i, err)
	}
	return []lock.Extra{{Key: a.keys.Rollout(), At: r.RolloutAt, Value: value}}
}

// took returns how long this host's own operation has lasted, for display. The monotonic clock starts over at a reboot,
// so after a reboot the result is the time by the wall clock, or the view's Elapsed if that is longer.
func took(r *round.Round) time.Duration {
	if r.View.Op.SameBoot {
		return r.View.Op.Elapsed
	}
	return max(r.Wall.Sub(r.Op.Started), r.View.Op.Elapsed)
}

// timeAtHost returns how long a rollout has been at its current host, or 0 if unknown. The value is only for display,
// because the hosts' clocks may differ.
func timeAtHost(rollout record.Rollout, now time.Time) time.Duration {
	if rollout.Since.IsZero() { // written by an agent that does not record Since
		return 0
	}
	return now.Sub(rollout.Since)
}

// stoppedRollout returns the record of a stopped rollout that lists only this host, for use if the full record is too
// large. The full record fitted when the rollout started, so another program must have enlarged it since.
func stoppedRollout(r record.Rollout, host int, why error) []byte {
	short := record.Rollout{
		ID: r.ID, Work: r.Work, By: r.By, State: record.RolloutStopped, Started: r.Started, Since: r.Since,
		Etcd: r.Etcd, Downgrade: r.Downgrade, DowngradeJob: r.DowngradeJob,
		Resumed: r.Resumed,
		Text: fmt.Sprintf("the progress after host %s could not be saved, in a rollout of %d hosts: %v",
			r.Hosts[host].Name, len(r.Hosts), why),
		Hosts: []record.RolloutHost{r.Hosts[host]},
	}
	value, err := record.Encode(short)
	if err != nil { // even the short record cannot be encoded
		value, _ = record.Encode(record.Rollout{State: record.RolloutStopped, Text: short.Text})
	}
	return value
}
