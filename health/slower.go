// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"
)

// DiskSlowerThanPeers is the code of the finding of a [comparison].
const DiskSlowerThanPeers Code = "DISK_SLOWER_THAN_PEERS"

const slowerName = "slower-than-peers"

// declareSlower declares the check of the comparison with the other voters and with the past.
func declareSlower(c *comparison) declaration {
	return declaration{
		Check: Check{
			Name: slowerName, Component: Disk, Gates: Joins | Leadership,
			Source: "the durations of the probe's writes, now and in the last week, and those that the other voters " +
				"publish on request",
			Limits: []Limit{
				{Of: "median write time, as a multiple of the usual time", Unit: "×", Enter: 2, Leave: 2 / leaveBy},
				{Of: "slow episodes in two hours", Unit: "", Enter: tailsFewest - 1, Leave: 0},
			},
			Problems: []Problem{{
				DiskSlowerThanPeers, Disk, Warm,
				"The disk is slower than the other voters' disks and slower than it used to be.",
				"All voters write the same entries, and this disk has been faster, so neither the workload nor the " +
					"model of the disk explains this. While this member leads, every write waits for this disk.",
				"check 'iostat -x 1' for other writers, 'smartctl -x' for wear and throttling, and the RAID " +
					"controller's battery",
			}},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			c.track = at
			return c
		},
	}
}

// transitions returns the rules of the comparison.
func (c *comparison) transitions() []rule {
	return []rule{
		{
			[]State{OK},
			Warm, DiskSlowerThanPeers,
			fmt.Sprintf("the median of the writes of the last %s has been 8 times the usual time and the other "+
				"voters' median for %s, 6 times for %s, 3 times for %s or twice for %s, and 1.5 times as long as it "+
				"ever was at this hour in the last week",
				show(c.pace.span), show(c.pace.hold(8)), show(c.pace.hold(6)), show(c.pace.hold(3)),
				show(c.pace.hold(2))),
			when(c.exceeds, c.measured), false,
		},
		{
			[]State{OK},
			Warm, DiskSlowerThanPeers,
			fmt.Sprintf("there are %d or more episodes of writes over %s within %s, at least %d times as many as on "+
				"the other voters and as usual", tailsFewest, show(c.limits.FsyncSlow), show(c.pace.tails), tailsTimes),
			when(func() bool { return c.answered() && c.tailing(c.othersTails()) }, c.measuredTails), false,
		},
		{
			[]State{Warm},
			OK, "",
			fmt.Sprintf("for %s, the median has been below the exceeded multiple divided by %.10g; if there were too "+
				"many slow episodes, there has been none for %s", show(c.pace.well), leaveBy, show(c.pace.tailsWell)),
			when(c.wellAgain, func() string { return "writes take as long as usual" }), true,
		},
	}
}

// exceeds reports whether the writes have taken a multiple of the usual time for long enough.
func (c *comparison) exceeds() bool { return c.answered() && c.p50 > 0 && c.highest(atOnce) != nil }

// fast reports whether the writes are fast enough for the finding to end.
func (c *comparison) fast() bool {
	return c.p50 > 0 && c.times < float64(max(c.rung, Rungs()[0]))/leaveBy
}

func (c *comparison) wellAgain() bool {
	if c.p50 == 0 || c.now-c.wellAt < c.track.patience(OK, c.pace.well, c.now) {
		return false
	}
	return !c.tailed || c.now-c.lastSlow >= c.pace.tailsWell
}

// entered records at the beginning of a finding which limit was exceeded, and resets the climbs at its end, so that
// they are not learned.
func (c *comparison) entered(from State) {
	if c.track.State == Warm && from != Warm {
		c.rung, c.since, c.wellAt = 0, c.now, c.now
		if r := c.highest(atOnce); r != nil {
			c.rung, c.since = r.rung, r.since
		}
		c.tailed = c.tailing(c.othersTails())
		return
	}
	c.rung, c.tailed, c.episodes = 0, false, nil
	for i := range c.climbs {
		c.climbs[i].since = 0
	}
}

// absent returns why there is nothing to compare. It returns no reason if the other voters publish nothing because this
// host does not ask, which is normal.
func (c *comparison) absent() string {
	switch {
	case !c.peers.Known:
		return Figure{Absent: c.peers.Absent}.absent()
	case len(c.peers.All) < peersFewest:
		return "there are fewer than two other voters to compare with"
	case c.usual == 0:
		return "the writes of this disk have been measured for less than half an hour"
	case c.askedSince != 0 && !c.answered() && c.now-c.askedSince >= c.pace.answers:
		return "fewer than two other voters have published how long their writes take"
	}
	return ""
}

// measured returns the comparison of the median as text.
func (c *comparison) measured() string {
	rung, since := c.rung, c.since
	if r := c.highest(atOnce); rung == 0 && r != nil {
		rung, since = r.rung, r.since
	}
	whose := "the disk's"
	if c.peers.Self != "" {
		whose = c.peers.Self + "'s"
	}
	text := fmt.Sprintf("%s writes take %s%.2g× as long as its own in the last week (%s now, %s then), for %s", whose,
		c.timesOthers(), float64(c.p50)/float64(max(c.usual, 1)), show(c.p50), show(c.usual), show(c.now-since))
	if longest := c.history.Longest(c.wall.Add(since-c.now), rung); longest > 0 {
		return text + fmt.Sprintf("; at this hour that never lasted over %s", show(longest))
	}
	return text + "; at this hour that did not happen in the last week"
}

// timesOthers returns, as text, the median of this disk as a multiple of the other voters'; empty if too few of them
// have published one.
func (c *comparison) timesOthers() string {
	others := c.others()
	if others == 0 {
		return ""
	}
	return fmt.Sprintf("%.2g× as long as the other voters' and ", float64(c.p50)/float64(others))
}

// measuredTails returns the comparison of the slow episodes as text.
func (c *comparison) measuredTails() string {
	var others []string
	for _, p := range c.young {
		others = append(others, fmt.Sprintf("%s %d", p.Host, p.Tails))
	}
	return fmt.Sprintf("%s of writes over %s within %s; the other voters had: %s", plural(len(c.episodes), "episode"),
		show(c.limits.FsyncSlow), show(c.pace.tails), strings.Join(others, ", "))
}

// text describes the current state.
func (c *comparison) text() string {
	switch {
	case c.track.State == Warm && c.tailed && c.rung == 0:
		return c.measuredTails()
	case c.track.State == Warm && c.fast():
		return c.track.Reason + ", until " + show(c.now-c.wellAt) + " ago"
	case c.track.State == Warm:
		return c.measured()
	case c.p50 == 0:
		return "too few writes to compare"
	}
	return fmt.Sprintf("the median write takes %s; in the last week it took %s", show(c.p50), show(c.usual))
}

// comparisonMemory is what survives a restart of the agent, in addition to the state and the history.
type comparisonMemory struct {
	Rung     int             `json:"rung,omitempty"`
	Tailed   bool            `json:"tailed,omitempty"`
	Since    time.Duration   `json:"since,omitempty"`
	LastSlow time.Duration   `json:"lastSlow,omitempty"`
	Episodes []time.Duration `json:"episodes,omitempty"`
}

func (c *comparison) memory() any {
	return comparisonMemory{c.rung, c.tailed, c.since, c.lastSlow, c.episodes}
}

func (c *comparison) recall(memory []byte, at, now time.Duration) error {
	var m comparisonMemory
	if err := strictly(memory, &m); err != nil {
		return err
	}
	possible := m.Rung >= 0 && m.Rung <= highestRung && len(m.Episodes) <= tailsKept
	if !possible || !past(at, append(m.Episodes, m.Since, m.LastSlow)...) {
		return errImpossible
	}
	c.rung, c.tailed, c.since, c.lastSlow, c.episodes = m.Rung, m.Tailed, m.Since, m.LastSlow, m.Episodes
	c.now, c.minuteAt, c.wellAt = now, now, now
	return nil
}
