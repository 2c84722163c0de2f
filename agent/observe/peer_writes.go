// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// peerWrites follows what the other voters publish about their writes. While the cluster does not answer, the last
// reading stays, and its measurements grow old.
type peerWrites struct {
	last  health.PeerWritesReading
	first map[record.MemberID]firstSeen
}

// firstSeen is when a measurement was first observed, and the ID of the host whose record contained it. The field named
// "of" identifies the measurement.
type firstSeen struct {
	of, host string
	at       time.Duration
}

// read returns the other voters' figures. Times are on the clock of health.Input.
func (p *peerWrites) read(r *round.Round, self string, own record.MemberID, now time.Duration,
) health.PeerWritesReading {
	if r.Reachable && r.Listed && r.HostsAt != 0 {
		p.last = health.PeerWritesReading{Known: true, Self: self}
		records := map[record.MemberID][]record.Host{}
		for _, h := range r.Hosts {
			records[h.MemberID] = append(records[h.MemberID], h)
		}
		first := map[record.MemberID]firstSeen{}
		for _, m := range r.Membership.Members {
			id := record.MemberID(m.ID)
			if m.Learner || id == own {
				continue
			}
			one := health.PeerWrites{Host: m.Name}
			if of := records[id]; len(of) > 0 {
				one = p.figures(p.chosen(of, m.Name), now)
				first[id] = p.first[id]
			}
			p.last.All = append(p.last.All, one)
		}
		p.first = first
	} else if !p.last.Known && !r.Reachable {
		return health.PeerWritesReading{Absent: "the cluster does not answer, so the other voters' writes are unknown"}
	}
	return p.aged(now)
}

// chosen returns the record that counts for a member. If several records name the same member, all but one are forged
// or outdated. The record that counted before still counts, otherwise the one with the member's name. Thus an
// additional record neither adds evidence nor suppresses any.
func (p *peerWrites) chosen(of []record.Host, name string) record.Host {
	best := of[0]
	for _, h := range of[1:] {
		if h.Name == name && best.Name != name {
			best = h
		}
	}
	for _, h := range of {
		if before := p.first[h.MemberID].host; before != "" && h.ID == before {
			best = h
		}
	}
	return best
}

// figures returns the figures of a voter's record, and notes when they were first observed.
func (p *peerWrites) figures(h record.Host, now time.Duration) health.PeerWrites {
	if p.first == nil {
		p.first = map[record.MemberID]firstSeen{}
	}
	if of := h.Instance + h.FiguresAt.String(); p.first[h.MemberID].of != of || p.first[h.MemberID].host != h.ID {
		p.first[h.MemberID] = firstSeen{of, h.ID, now}
	}
	f := writeFigures(h)
	return health.PeerWrites{Host: h.Name, P50: f.P50, P90: f.P90, Tails: f.Tails, Age: p.first[h.MemberID].at}
}

// aged returns the last reading with ages instead of times.
func (p *peerWrites) aged(now time.Duration) health.PeerWritesReading {
	out := p.last
	out.All = make([]health.PeerWrites, len(p.last.All))
	for i, one := range p.last.All {
		one.Age = now - one.Age
		out.All[i] = one
	}
	return out
}

const (
	// historyEvery is the interval at which the history of the disk is saved. It is also saved when the agent stops. If
	// the host loses power, what was learned since the last save is lost.
	historyEvery   = 10 * time.Minute
	historyTimeout = 10 * time.Second
	// historyStop is how long an agent that stops waits for the disk.
	historyStop = 2 * time.Second
)

// history saves what the judge has learned about the disk. It writes outside the loop, because the disk may hang.
type history struct {
	saving  poll.Poller[struct{}]
	savedAt time.Duration
}

// loadHistory restores what an earlier agent has learned about the disk, or starts with an empty history.
func (j *judge) loadHistory() {
	j.learned.savedAt = j.now()
	data, err := j.opt.Local.DiskHistory()
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var h health.History
	if err == nil {
		h, err = health.DecodeHistory(data)
	}
	if err != nil {
		j.log.Warn("cannot load the disk's history; usual write times are learned again within a week, the drives' "+
			"wear within a month", "error", err)
		return
	}
	j.health.UseHistory(h)
}

// saveHistory saves the history if that is due.
func (j *judge) saveHistory(ctx context.Context) {
	if now := j.now(); now-j.learned.savedAt >= historyEvery {
		j.learned.savedAt = now
		j.startSavingHistory(ctx)
	}
}

// startSavingHistory begins to save the history, unless a save is in progress. The returned channel is closed when this
// call's save has ended or failed. It stays open if another save is in progress.
func (j *judge) startSavingHistory(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	data, err := j.health.History()
	if err != nil {
		j.log.Warn("cannot save the disk's history", "error", err)
		close(done)
		return done
	}
	j.learned.saving.Refresh(ctx, j.opt.Now, 0, historyTimeout, func(context.Context) (struct{}, error) {
		defer close(done)
		if j.opt.Noting != nil {
			j.opt.Noting("disk history")
		}
		err := j.opt.Local.SaveDiskHistory(data)
		if err != nil {
			j.log.Warn("cannot save the disk's history", "error", err)
		}
		return struct{}{}, err
	})
	return done
}

// saveHistoryLast saves the history when the agent stops. It does not wait long for a disk that hangs.
func (j *judge) saveHistoryLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyStop)
	defer cancel()
	select {
	case <-j.startSavingHistory(ctx):
	case <-ctx.Done():
		j.log.Warn("the disk's history was not saved in time", "timeout", historyStop)
	}
}
