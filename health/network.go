// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// The codes of the checks of the network.
const (
	NetworkPartition Code = "NETWORK_PARTITION"
	NetworkOneWay    Code = "NETWORK_ONE_WAY"
	NetworkLargeLost Code = "NETWORK_LARGE_PACKETS_LOST"
)

// NetworkReading describes which hosts can reach each other, as the hosts with a current host record report. The zero
// value means not read.
type NetworkReading struct {
	Known  bool
	Absent string // why nothing is known, as a stable text
	Self   string // the name of this host
	Paths  []Path // paths between hosts with a current host record, one per direction
}

func (n NetworkReading) absent() string { return Figure{Known: n.Known, Absent: n.Absent}.absent() }

// Path is the connection from one host to the member of another host.
type Path struct {
	From, To string // names of hosts
	State    PathState
	// Segments are the TCP segments of From's probes of To, and the part that was retransmitted.
	Segments Part
}

// PathState is the state of a path.
type PathState uint8

// The states of a path.
const (
	PathUnknown   PathState = iota
	PathWell                // the host can be reached
	PathLost                // no connection can be made
	PathLargeLost           // small packets get through, larger ones do not
)

const (
	// networkBad is how long a path must fail before a finding. It exceeds the default lifetime of a host record, so
	// that a host that is down is not reported as cut off.
	networkBad = 90 * time.Second
	// networkWell is how long a path must work before the finding ends. In that time, six requests in a row succeed.
	networkWell = time.Minute
	// observersAgree is how many hosts must fail to reach a host for a finding if that host does not report whether it
	// reaches them.
	observersAgree = 2
)

const (
	networkSource = "what each host measures on the members' peer and client ports; see 'quorumctl network'"
	networkUnit   = "connections"
)

// checkPartition is the check of hosts of the cluster that cannot reach each other.
var checkPartition = advice{
	name: "partition", component: Network, source: networkSource,
	limit: Limit{Of: "failing connections from or to this host", Unit: networkUnit},
	code:  NetworkPartition,
	title: "Two hosts that are both up cannot reach each other.",
	meaning: "Both reach the cluster through other hosts, but no connection between the two succeeds. The cluster " +
		"works as long as a leader reaches a majority; the next failure may end that.",
	remedy: "check 'quorumctl network' for what the failing connections have in common: a cable, a switch, a route, " +
		"a firewall",
	measure: paths(NetworkReading.parted),
}

// checkOneWay is the check of hosts that can reach each other in only one direction.
var checkOneWay = advice{
	name: "one-way", component: Network, source: networkSource,
	limit:   Limit{Of: "one-way connections from or to this host", Unit: networkUnit},
	code:    NetworkOneWay,
	title:   "Connections between two hosts succeed in one direction only.",
	meaning: "etcd members need both directions: each sends to the other over its own connections.",
	remedy:  "check the firewall rules on and between the two hosts for etcd's ports",
	measure: paths(NetworkReading.oneWay),
}

// checkLargeLost is the check of connections on which only small packets get through.
var checkLargeLost = advice{
	name: "large-packets", component: Network, source: networkSource,
	limit: Limit{Of: "connections from or to this host that lose large packets", Unit: networkUnit},
	code:  NetworkLargeLost,
	title: "Large packets are lost on a path where small ones get through.",
	meaning: "Heartbeats arrive but log entries do not: a member looks alive but falls behind, or never receives its " +
		"snapshot. A hop has a smaller MTU, and the ICMP message that would report it is dropped (an MTU black " +
		"hole).",
	remedy: "compare the MTU of both hosts and of the path between them ('ip link', 'tracepath'); allow ICMP " +
		"\"fragmentation needed\"",
	measure: paths(NetworkReading.large),
}

// paths returns the evidence of a check of connections from or to this host.
func paths(wrong func(NetworkReading) []string) func(advice, *track) evidence {
	return func(a advice, at *track) evidence {
		return lists(networkBad, networkWell, listed{
			bad: a.limit.Of, well: "no " + a.limit.Of,
			missing: func(in Input) string { return in.Network.absent() },
			look:    func(in Input, _ bool) []string { return wrong(in.Network) },
		})(a, at)
	}
}

// state returns the state of the path from one host to another, as the first one reports it.
func (n NetworkReading) state(from, to string) PathState {
	for _, w := range n.Paths {
		if w.From == from && w.To == to {
			return w.State
		}
	}
	return PathUnknown
}

// each returns the text of each path from or to this host that is in the given state, without empty texts.
func (n NetworkReading) each(state PathState, text func(from, to string) string) (all []string) {
	for _, w := range n.Paths {
		if w.State != state || w.From != n.Self && w.To != n.Self {
			continue
		}
		if one := text(w.From, w.To); one != "" {
			all = append(all, one)
		}
	}
	return all
}

func (n NetworkReading) oneWay() []string {
	return n.each(PathLost, func(from, to string) string {
		if n.state(to, from) != PathWell {
			return ""
		}
		return fmt.Sprintf("%s cannot reach %s, but %s reaches %s", from, to, to, from)
	})
}

func (n NetworkReading) parted() []string {
	return n.each(PathLost, func(from, to string) string {
		back := n.state(to, from)
		observers := 0
		for _, w := range n.Paths {
			if w.To == to && w.State == PathLost {
				observers++
			}
		}
		switch {
		case back == PathLost && to == n.Self:
			return "" // reported for the opposite direction
		case back == PathLost:
			return fmt.Sprintf("%s and %s cannot reach each other, but both reach the cluster", from, to)
		case back == PathUnknown && observers >= observersAgree:
			return fmt.Sprintf("%d hosts including %[3]s cannot reach %[2]s, but %[2]s reaches the cluster",
				observers, to, from)
		}
		return ""
	})
}

func (n NetworkReading) large() []string {
	return n.each(PathLargeLost, func(from, to string) string {
		return fmt.Sprintf("large packets are lost from %s to %s; small ones get through", from, to)
	})
}
