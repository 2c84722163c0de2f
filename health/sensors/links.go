// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumd/quorumd/health"
)

const (
	netClass      = "class/net"
	mostLinks     = 16
	resolvedAgain = 5 * time.Minute // how long the addresses of a name are cached

	noAddress = absence("the address of etcd's peer URL is not known")
	noHolder  = absence("no interface of this host has the address of etcd's peer URL")
)

// resolved are the addresses of a name.
type resolved struct {
	of   string
	at   time.Duration
	all  []netip.Addr
	once bool // a name was resolved
}

// Links returns the kernel's report on the interface with an address of this host name, and on the interfaces below it.
// Resolving the name may take until the context ends.
func (r *Reader) Links(ctx context.Context, host string) health.LinkReading {
	addresses, err := r.addressesOf(ctx, host)
	if err != nil {
		return health.LinkReading{Absent: err.Error()}
	}
	name, err := r.holder(addresses)
	if err != nil {
		return health.LinkReading{Absent: err.Error()}
	}
	all := r.links(name, "", nil)
	if len(all) == 0 {
		return health.LinkReading{Absent: "cannot read " + filepath.Join(r.sys, netClass, name)}
	}
	return health.LinkReading{At: r.now(), Links: all}
}

func (r *Reader) addressesOf(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.WithZone("").Unmap()}, nil
	}
	if now := r.now(); !r.names.once || r.names.of != host || now-r.names.at >= resolvedAgain {
		all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, noAddress
		}
		for i := range all {
			all[i] = all[i].Unmap()
		}
		r.names = resolved{host, now, all, true}
	}
	return r.names.all, nil
}

// links adds an interface and those below it. Of those below, it omits interfaces that are not hardware and have none
// below them, such as a bridge's ports to virtual machines, which come and go.
func (r *Reader) links(name, bond string, all []health.Link) []health.Link {
	known := func(l health.Link) bool { return l.Name == name }
	if len(all) >= mostLinks || slices.ContainsFunc(all, known) || name == "" || strings.ContainsAny(name, "/\x00") {
		return all
	}
	dir := filepath.Join(r.sys, netClass, name)
	lower, err := filepath.Glob(filepath.Join(dir, "lower_*"))
	if err != nil || !exists(dir, "operstate") || len(lower) == 0 && len(all) > 0 && !exists(dir, "device") {
		return all
	}
	at := len(all)
	all = append(all, describeLink(dir, name))
	if exists(dir, "bonding") {
		bond = filepath.Join(dir, "bonding")
	} else if bond != "" {
		group := attribute(dir, "bonding_slave/ad_aggregator_id")
		whole := attribute(bond, "ad_aggregator")
		all[at].Apart = group != "" && whole != "" && group != whole
		bond = ""
	}
	for _, l := range lower {
		below := strings.TrimPrefix(filepath.Base(l), "lower_")
		before := len(all)
		if all = r.links(below, bond, all); len(all) > before {
			all[at].On = append(all[at].On, word(below))
		}
	}
	if at > 0 && len(lower) > 0 && len(all[at].On) == 0 && !exists(dir, "device") {
		return all[:at]
	}
	return all
}

// describeLink reads the state of an interface.
func describeLink(dir, name string) health.Link {
	l := health.Link{Name: word(name), Half: attribute(dir, "duplex") == "half"}
	state := attribute(dir, "operstate")
	switch carrier := attribute(dir, "carrier"); {
	case carrier == "0" || state == "down" || attribute(dir, "bonding_slave/mii_status") == "down":
		l.Carrier = health.Figure{Known: true}
	case carrier == "1":
		l.Carrier = health.Figure{Known: true, Value: 1}
	default:
		l.Carrier.Absent = "the kernel does not report the link state"
	}
	l.Speed.Absent = "the driver reports no speed"
	if n, err := strconv.ParseUint(attribute(dir, "speed"), 10, 31); err == nil && n > 0 {
		l.Speed = health.Figure{Known: true, Value: float64(n)}
	}
	l.Changes = figure(sum(dir, "carrier_changes"))
	l.Packets = figure(sum(dir, "statistics/rx_packets", "statistics/tx_packets"))
	l.Errors = figure(sum(dir, "statistics/rx_errors", "statistics/tx_errors"))
	l.Lost = figure(sum(dir, "statistics/rx_missed_errors", "statistics/rx_fifo_errors", "statistics/tx_dropped"))
	return l
}

func sum(dir string, counters ...string) (float64, error) {
	all := 0.0
	for _, c := range counters {
		path := filepath.Join(dir, c)
		text, err := read(path)
		if err != nil {
			return 0, absence("cannot read " + path)
		}
		n, err := count(path, strings.TrimSpace(text))
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}
