// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net/netip"
	"net/url"
	"path/filepath"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/disk/smart"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/health/sensors"
	"github.com/quorumd/quorumd/systemd/rootfile"
)

// hardware tells what drives and sensors say.
func hardware() health.HardwareReading {
	return health.HardwareReading{
		Drives:  smart.Read(rootfile.Root(), filepath.Join(smart.Dir, smart.File), smart.Monotonic()),
		Sensors: sensors.New().Sensors(),
	}
}

// peerHost is the address or the name under which etcd's peers reach it: what it listens on, unless that is every
// address of the host.
func peerHost(e config.Etcd) string {
	if u, err := url.Parse(e.ListenPeerURL); err == nil {
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && !a.IsUnspecified() {
			return u.Hostname()
		}
	}
	u, err := url.Parse(e.PeerURL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
