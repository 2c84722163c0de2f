// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The codes of the checks of network interfaces.
const (
	LinkDown     Code = "LINK_DOWN"
	LinkSlow     Code = "LINK_SLOW"
	LinkFlapping Code = "LINK_FLAPPING"
	LinkErrors   Code = "LINK_ERRORS"
)

// LinkReading is what the kernel reports, at one moment, about the interface that carries etcd's peer traffic. The zero
// value means not read.
type LinkReading struct {
	// Absent is why there is no report.
	Absent string
	// At is the time of the reading.
	At time.Duration
	// Links are the interface and those below it, for example the ports of a bond; higher ones first.
	Links []Link
	// Peers are the TCP connections on which etcd sends to its peers.
	Peers PeersReading
}

// Link is a network interface.
type Link struct {
	Name string
	On   []string // the interfaces directly below; none for hardware
	// Carrier is 1 if the interface has a link, and 0 if not.
	Carrier Figure
	// Apart means that the interface is a port of a bond, but not in the bond's aggregation group (LACP).
	Apart bool
	Speed Figure // in Mbit/s
	Half  bool   // half duplex
	// Changes is how many times the link changed. All counters count from the boot.
	Changes Figure
	Packets Figure // packets received and sent
	Errors  Figure // corrupted packets
	Lost    Figure // packets dropped because there was no buffer
}

const (
	linkSource    = " of the interface with the address of etcd's peer URL, and of the interfaces below it"
	linkFor       = time.Minute
	linkFlapSpan  = 10 * time.Minute
	linkFlaps     = 2 // number of changes; a link that goes down and up again changes twice
	linkErrorSpan = 10 * time.Minute
	linkFewest    = 10_000 // packets
	linksKept     = 64

	linkErrors, linkErrorsLeave = 0.1, 0.02 // percent of the packets
)

func (r LinkReading) absent() string {
	if len(r.Links) > 0 {
		return ""
	}
	return cmp.Or(r.Absent, notYet)
}

// ports returns the interfaces that have no interface below them.
func (r LinkReading) ports() []Link {
	return slices.DeleteFunc(slices.Clone(r.Links), func(l Link) bool { return len(l.On) > 0 })
}

// checkLink is the check of interfaces without a link. Other checks detect that etcd is unreachable. This check reports
// the reason. It also detects a bond's port that has no link, which no other check does.
var checkLink = advice{
	name: "link", component: Network,
	source: "carrier" + linkSource + "; mii_status and ad_aggregator_id of the ports of a bond",
	limit:  Limit{Of: "interfaces without a link", Unit: "interfaces"},
	code:   LinkDown,
	title:  "An interface that carries etcd's traffic has no link, or its bond does not use it.",
	meaning: "A bond with a missing port is up, but has less redundancy or none. A single interface without a link " +
		"carries nothing.",
	remedy: "find it with 'ip link' and in /proc/net/bonding; check its cable, its transceiver and the switch port",
	measure: lists(linkFor, linkFor, listed{
		bad:     "an interface has no link, or is not in the aggregation group of its bond",
		well:    "every interface has a link, and every port of a bond is in its aggregation group",
		missing: func(in Input) string { return in.Links.absent() },
		look:    func(in Input, _ bool) []string { return in.Links.down() },
	}),
}

// down lists the ports outside of their bond's aggregation group, and the interfaces without a link. It omits an
// interface without a link if an interface directly below it has no link either.
func (r LinkReading) down() (all []string) {
	for _, l := range r.Links {
		bad := l.Carrier.Known && l.Carrier.Value == 0
		below := slices.ContainsFunc(r.Links, func(o Link) bool {
			return slices.Contains(l.On, o.Name) && o.Carrier.Known && o.Carrier.Value == 0
		})
		switch {
		case bad && !below:
			all = append(all, l.Name+" has no link"+r.withoutIt(l.Name))
		case !bad && l.Apart:
			all = append(all, l.Name+" is not in the aggregation group of its bond (LACP)")
		}
	}
	return all
}

// withoutIt describes which interfaces a bond still uses without the given one; empty if there are none.
func (r LinkReading) withoutIt(name string) string {
	for _, above := range r.Links {
		if above.Carrier.Value != 1 || !slices.Contains(above.On, name) {
			continue
		}
		var left []string
		for _, l := range r.Links {
			if l.Name != name && l.Carrier.Value == 1 && slices.Contains(above.On, l.Name) {
				left = append(left, l.Name)
			}
		}
		if len(left) > 0 {
			return ": " + above.Name + " runs over " + strings.Join(left, ", ") + " only"
		}
	}
	return ""
}

// checkLinkSpeed is the check of interfaces that are slower than they were, or in half duplex.
var checkLinkSpeed = advice{
	name: "link-speed", component: Network,
	source:  "speed and duplex" + linkSource,
	limit:   Limit{Of: "interfaces slower than their best speed since the boot", Unit: "interfaces"},
	code:    LinkSlow,
	title:   "An interface that carries etcd's traffic negotiated a lower speed.",
	meaning: "It runs slower than before, or in half duplex. Snapshots take longer, and heartbeats queue behind them.",
	remedy: "check 'ethtool' for what both sides advertise; replace the cable or the transceiver. If the speed is " +
		"intended, mute the finding with 'quorumctl health mute LINK_SLOW --reason …'",
	measure: func(_ advice, at *track) evidence {
		e := &linkSpeed{best: map[string]float64{}}
		e.listed = listed{
			hysteresis: hysteresis{code: LinkSlow, track: at, badFor: linkFor, wellFor: linkFor},
			bad:        "an interface is slower than before, or in half duplex",
			well:       "every interface is as fast as before, and none is in half duplex",
			missing:    e.missing, look: e.look,
		}
		return e
	},
}

// linkSpeed is the evidence on the speeds of links.
type linkSpeed struct {
	listed

	best map[string]float64 // the best speed since the boot, by interface
}

func (e *linkSpeed) missing(in Input) string {
	if why := in.Links.absent(); why != "" || len(e.best) > 0 {
		return why
	}
	why := ""
	for _, l := range in.Links.ports() {
		if l.Speed.Known || l.Half {
			return ""
		}
		why = l.Speed.absent()
	}
	return why
}

func (e *linkSpeed) look(in Input, _ bool) (all []string) {
	ports := in.Links.ports()
	if len(e.best)+len(ports) > linksKept {
		maps.DeleteFunc(e.best, func(name string, _ float64) bool {
			return !slices.ContainsFunc(ports, func(l Link) bool { return l.Name == name })
		})
	}
	for _, l := range ports {
		if l.Half {
			all = append(all, l.Name+" runs in half duplex")
		}
		if !l.Speed.Known {
			continue
		}
		if e.best[l.Name] = max(e.best[l.Name], l.Speed.Value); l.Speed.Value < e.best[l.Name] {
			all = append(all, fmt.Sprintf("%s runs at %.0f Mbit/s, but ran at %.0f Mbit/s before", l.Name,
				l.Speed.Value, e.best[l.Name]))
		}
	}
	return all
}

func (e *linkSpeed) memory() any { return e.best }

func (e *linkSpeed) recall(memory []byte, _, _ time.Duration) error {
	best := map[string]float64{}
	if err := strictly(memory, &best); err != nil {
		return err
	}
	for _, speed := range best {
		if !(speed > 0) || len(best) > linksKept {
			return errors.New("it has impossible interface speeds")
		}
	}
	if best != nil {
		e.best = best
	}
	return nil
}

// checkFlaps is the check of flapping links.
var checkFlaps = advice{
	name: "link-flaps", component: Network,
	source: "carrier_changes" + linkSource,
	limit:  Limit{Of: "link changes", Unit: "in ten minutes", Enter: linkFlaps},
	code:   LinkFlapping,
	title:  "A link is flapping.",
	meaning: "Every change loses packets, and a switch may forward nothing for seconds afterwards. Leader changes " +
		"may follow.",
	remedy: "check 'journalctl -k' for the interface and the times; replace its cable or transceiver, or try another " +
		"switch port",
	measure: func(a advice, at *track) evidence {
		r := risen{}
		return grows(linkFlapSpan, func(in Input) Figure { return in.Links.changes(&r) },
			withLimit("%.0f link changes in the last ten minutes, limit %.0f"))(a, at)
	},
}

// changes returns how many times the ports together have changed since the first reading.
func (r LinkReading) changes(seen *risen) Figure {
	if why := r.absent(); why != "" {
		return Figure{Absent: why}
	}
	last := map[string]float64{}
	for _, l := range r.ports() {
		if !l.Changes.Known {
			return l.Changes
		}
		last[l.Name] = l.Changes.Value
	}
	return seen.figure(last)
}

// checkLinkErrors is the check of packets that arrive corrupted, or for which there was no buffer. The kernel's counter
// rx_dropped is not used, because it also counts every packet that no program on this host reads.
var checkLinkErrors = advice{
	name: "link-errors", component: Network,
	source: "rx_errors, tx_errors, rx_missed_errors, rx_fifo_errors and tx_dropped" + linkSource,
	limit: Limit{
		Of: "corrupted or dropped packets", Unit: "% in ten minutes", Enter: linkErrors, Leave: linkErrorsLeave,
	},
	code:  LinkErrors,
	title: "An interface that carries etcd's traffic has corrupted or dropped packets.",
	meaning: "Corrupted packets point to a cable, transceiver or switch port; dropped ones to a host that does not " +
		"drain its queue in time. Each is retransmitted a fifth of a second later, when etcd's heartbeat is " +
		"already overdue.",
	remedy: "check with 'ip -s -s link' and 'ethtool -S' whether packets are corrupted or dropped: if corrupted, " +
		"replace the cable or transceiver; if dropped, check what keeps the CPUs busy",
	measure: func(a advice, at *track) evidence {
		e := &linkLosses{limit: a.limit, by: map[string]*losses{}}
		return lists(linkFor, linkErrorSpan, listed{
			bad: fmt.Sprintf("over %.10g %% of an interface's packets are corrupted or dropped", a.limit.Enter),
			well: fmt.Sprintf("at most %.10g %% of any interface's packets are corrupted or dropped",
				a.limit.Leave),
			missing: func(in Input) string { return in.Links.counts() },
			look:    e.look,
		})(a, at)
	},
}

// counts returns why no interface has all the counters that the check needs; empty if one has.
func (r LinkReading) counts() string {
	if why := r.absent(); why != "" {
		return why
	}
	for _, l := range r.ports() {
		if l.Packets.Known && l.Errors.Known && l.Lost.Known {
			return ""
		}
	}
	return "the kernel has no error counters for interfaces of this type"
}

// linkLosses keeps the recent counts of each interface.
type linkLosses struct {
	limit Limit
	by    map[string]*losses
}

type losses struct{ broken, lost window }

func (e *linkLosses) look(in Input, bad bool) (all []string) {
	ports := in.Links.ports()
	maps.DeleteFunc(e.by, func(name string, _ *losses) bool {
		return !slices.ContainsFunc(ports, func(l Link) bool { return l.Name == name })
	})
	for _, l := range ports {
		w := e.by[l.Name]
		if w == nil {
			w = &losses{window{span: linkErrorSpan}, window{span: linkErrorSpan}}
			e.by[l.Name] = w
		}
		known := l.Packets.Known && l.Errors.Known && l.Lost.Known
		w.broken.take(in.Links.At, Part{Of: l.Errors.Value, Among: l.Packets.Value, Known: known})
		w.lost.take(in.Links.At, Part{Of: l.Lost.Value, Among: l.Packets.Value, Known: known})
		for _, k := range []struct {
			what string
			w    window
		}{{"corrupted", w.broken}, {"dropped", w.lost}} {
			if share := k.w.share(linkFewest); e.limit.beyond(share, bad) {
				all = append(all, fmt.Sprintf("%.2g %% of the packets of %s were %s in the last ten minutes, "+
					"limit %.10g %%", share, l.Name, k.what, e.limit.Enter))
			}
		}
	}
	return all
}
