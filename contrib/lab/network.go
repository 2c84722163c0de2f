// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The network is a bridge in the lab's own namespace. The program that runs the lab has a port there too, so that it
// reaches the hosts during a partition between them.
const (
	bridge  = "br0"
	subnet  = "10.77.0."
	console = subnet + "254" // the address of the program that runs the lab
)

// rules are the nftables rules that drop the traffic from one port to another, for each pair of ports in a set.
const rules = `table bridge lab {
	set cut { type ifname . ifname; }
	chain forward { type filter hook forward priority 0; iifname . oifname @cut drop; }
}
`

func makeNetwork(ctx context.Context) error {
	_, err := machine(ctx, strings.Join([]string{
		"link set lo up",
		"link add " + bridge + " type bridge",
		"addr add " + console + "/24 dev " + bridge,
		"link set " + bridge + " up",
	}, "\n"), "ip", "-batch", "-")
	if err != nil {
		return err
	}
	_, err = machine(ctx, rules, "nft", "-f", "-")
	return err
}

// port returns the name of the bridge's end of the host's veth pair.
func (h *Host) port() string { return "v" + h.Name }

// plug creates a network namespace for the host and connects it to the bridge.
func (h *Host) plug(ctx context.Context) error {
	_, err := machine(ctx, strings.Join([]string{
		"netns add " + h.Name,
		"link add " + h.port() + " type veth peer name eth0 netns " + h.Name,
		"link set " + h.port() + " master " + bridge + " up",
	}, "\n"), "ip", "-batch", "-")
	if err != nil {
		return err
	}
	_, err = machine(ctx, strings.Join([]string{
		"link set lo up",
		// a fixed address, like a network card's
		fmt.Sprintf("link set eth0 address 02:00:0a:4d:00:%02x up", h.number),
		"addr add " + h.Address + "/24 dev eth0",
	}, "\n"), "ip", "-n", h.Name, "-batch", "-")
	return err
}

// AddAddress adds an address with a prefix length, such as 192.0.2.1/24, to a host until it is powered off. The
// program that runs the lab does not reach that address.
func (h *Host) AddAddress(ctx context.Context, address string) error {
	_, err := machine(ctx, "", "ip", "-n", h.Name, "addr", "add", address, "dev", "eth0")
	return err
}

// unplug removes the host's network with all connections, without any packet to the other hosts. The kernel removes the
// namespace later.
func (h *Host) unplug(ctx context.Context) error {
	_, err := machine(ctx, "", "ip", "link", "del", h.port())
	_, nsErr := machine(ctx, "", "ip", "netns", "del", h.Name)
	return errors.Join(err, nsErr)
}

// Cut drops all traffic from one host to another, in that direction only.
func (l *Lab) Cut(ctx context.Context, from, to *Host) error {
	_, err := machine(ctx, "", "nft", "add", "element", "bridge", "lab", "cut",
		fmt.Sprintf("{ %s . %s }", from.port(), to.port()))
	return err
}

// Mute drops what a host sends to all other hosts; it still receives from them.
func (l *Lab) Mute(ctx context.Context, h *Host) error {
	return l.others(h, func(o *Host) error { return l.Cut(ctx, h, o) })
}

// Deafen drops what all other hosts send to a host; they still receive from it.
func (l *Lab) Deafen(ctx context.Context, h *Host) error {
	return l.others(h, func(o *Host) error { return l.Cut(ctx, o, h) })
}

// Isolate cuts a host off from all other hosts, in both directions.
func (l *Lab) Isolate(ctx context.Context, h *Host) error {
	return errors.Join(l.Mute(ctx, h), l.Deafen(ctx, h))
}

// Heal removes all cuts.
func (l *Lab) Heal(ctx context.Context) error {
	_, err := machine(ctx, "", "nft", "flush", "set", "bridge", "lab", "cut")
	return err
}

func (l *Lab) others(h *Host, do func(*Host) error) error {
	var errs []error
	for _, o := range l.Hosts {
		if o != h {
			errs = append(errs, do(o))
		}
	}
	return errors.Join(errs...)
}
