// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs && long

package faults

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestLinkFaultsAreFoundInTime takes down the link of a host in its own network namespace, then lets it flap.
func TestLinkFaultsAreFoundInTime(t *testing.T) {
	t.Parallel()
	made := tableOf(t, "link")
	s := &site{t: t}
	own, far := s.namespace(), s.namespace()
	s.inside(own, "ip link set lo up", "ip link add eth0 type veth peer name port netns "+far,
		"ip addr add 10.98.0.1/24 dev eth0", "ip link set eth0 up")
	s.inside(far, "ip link set port up")
	// /sys shows the interfaces of the network namespace in which it was mounted.
	h := start(t, testbed.MountFaultfs(t, memory(t)).Dir, map[string]string{"etcd.peerURL": "http://10.98.0.1:2380"},
		"nsenter", "-n", "-t", own, "unshare", "-m", "sh", "-c", `mount -t sysfs sysfs /sys && exec "$@"`, "sh")
	until(t, h, readyBound, "OK", "")

	for i, f := range []struct {
		name, how string
		begins    []string
		code      string
	}{
		{
			"the interface of etcd's peer traffic loses its link",
			"`ip link set … down` at the other end of its cable",
			[]string{"down"},
			"LINK_DOWN",
		},
		{"then its link flaps", "the same, up and down", []string{"up", "down", "up"}, "LINK_FLAPPING"},
	} {
		began := time.Now()
		for _, to := range f.begins {
			s.inside(far, "ip link set port "+to)
		}
		until(t, h, 4*time.Minute, "OK", f.code)
		made.add(t, i, Row{Fault: f.name, How: f.how}, time.Since(began), h, f.code)
	}
}
