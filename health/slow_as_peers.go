// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "fmt"

// DiskSlowAsPeers is the code of the check of a disk that is slower than recommended, but no slower than usual or than
// the other voters' disks.
const DiskSlowAsPeers Code = "DISK_SLOW_AS_PEERS"

// declareSlowAsPeers declares the check of a disk whose writes exceed etcd's limit, but which is no slower than usual
// or than the other voters' disks. It only advises, because a leadership transfer would not help.
func declareSlowAsPeers(t Thresholds, c *comparison) declaration {
	return advice{
		name: "slow-as-peers", component: Disk,
		source: "the comparison of the check " + slowerName,
		limit: Limit{
			Of: "p99 of the writes", Unit: "s", Enter: t.FsyncWarm.Seconds(), Leave: t.FsyncWarm.Seconds(),
		},
		code:  DiskSlowAsPeers,
		title: "The disk is slower than recommended for etcd, but no slower than usual or than other voters' disks.",
		meaning: "More than 1 % of the writes are slower than etcd's hardware guide allows, but that is usual for " +
			"this disk, or the other voters' writes take as long. A leadership transfer is unlikely to help.",
		remedy: "check the load of the cluster and of the storage that the voters share; use faster disks",
		measure: func(a advice, at *track) evidence {
			return &slowAsPeers{
				hysteresis: hysteresis{code: a.code, track: at, wellFor: t.pace().settle}, compared: c, limits: t,
			}
		},
	}.declare()
}

type slowAsPeers struct {
	plain
	hysteresis

	limits   Thresholds
	compared *comparison
	excused  bool
}

// read uses what the fsync check has found in the same round.
func (s *slowAsPeers) read(in Input) {
	s.excused, s.compared.excused = s.compared.excused, false
	text := ""
	if s.excused {
		text = s.present()
	}
	s.record(in.Now, s.excused, !s.excused, text)
}

func (s *slowAsPeers) absent() string { return s.compared.absent() }

// usualSpell explains why a host that is slower than usual is not accused.
const usualSpell = "; slower than usual, but slow spells as long as this one are usual at this hour"

func (s *slowAsPeers) present() string {
	c := s.compared
	if !s.excused {
		return "at most 1 % of the writes are slow, or this disk is slower than the others"
	}
	text := fmt.Sprintf("more than 1 %% of the writes take longer than %s; the median is %s, and was %s in the "+
		"last week",
		show(s.limits.FsyncWarm), show(c.p50), show(c.usual))
	switch {
	case !c.answered() && c.habitual:
		return text + usualSpell
	case !c.answered() && c.likeLastWeek():
		return text + "; as fast as in the last week"
	case !c.answered():
		return text + fmt.Sprintf("; as fast as the other voters' when compared %s ago", show(c.now-c.agreedAt))
	case c.times >= float64(Rungs()[0]):
		return text + "; on the other voters it is " + show(c.others()) + usualSpell
	}
	return text + "; on the other voters it is " + show(c.others())
}

func (s *slowAsPeers) text() string { return s.currentText(s.present()) }

func (s *slowAsPeers) transitions() []rule {
	return s.rules("more than 1 % of the writes are too slow, as usual or as on the other voters",
		"at most 1 % of the writes are too slow, or this disk is slower than the others", s.present)
}
