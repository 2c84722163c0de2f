// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/health/kernellog"
	"github.com/quorumd/quorumd/health/sensors"
	"github.com/quorumd/quorumd/health/smart"
	"github.com/quorumd/quorumd/systemd/rootfile"
)

// hardware returns the recorded readings of the drives, the kernel's messages about devices, and chrony's time sources.
// It queries no device.
func hardware() health.HardwareReading {
	logged, hung := kernellog.Read(rootfile.Root(), filepath.Join(kernellog.Dir, kernellog.File), disk.Monotonic())
	return health.HardwareReading{
		Drives: smart.Read(rootfile.Root(), filepath.Join(smart.Dir, smart.File), smart.Monotonic()),
		Time:   sensors.New().Time(), Logged: logged, TasksHung: hung,
	}
}

// chips returns the readings of the sensors.
func chips() health.Several[health.Sensor] { return sensors.New().Sensors() }

// databaseApart returns a function that reads the file system of etcd's database; nil unless the write-ahead log has
// its own directory.
func databaseApart(kernel *sensors.Reader, e config.Etcd) func(log uint64) health.DatabaseReading {
	if e.WALDir == "" {
		return nil
	}
	return func(log uint64) health.DatabaseReading { return kernel.Database(e.DataDir, log) }
}

// peerHost returns the address or name of etcd's peer traffic: the address on which etcd listens for peers, or the host
// of its peer URL if it listens on all addresses.
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

// peersEvery is how often the peer connections are read. The kernel walks through all connections of the host for that,
// and the check covers minutes.
const peersEvery = 30 * time.Second

// linkReader returns the reader of what carries etcd's peer traffic: interfaces, and the connections over them. It is
// for one caller at a time.
func linkReader(kernel *sensors.Reader, e config.Etcd) func(context.Context) health.LinkReading {
	host, port := peerHost(e), peerPort(e)
	peers := health.PeersReading{Absent: "etcd's peer URL names no port"}
	return func(ctx context.Context) health.LinkReading {
		r := kernel.Links(ctx, host)
		if port > 0 && (!peers.Known || disk.Monotonic()-peers.At >= peersEvery) {
			peers = kernel.Peers(port)
		}
		r.Peers = peers
		return r
	}
}

// peerPort returns the port of etcd's peer traffic; 0 if no URL contains one.
func peerPort(e config.Etcd) uint16 {
	for _, text := range []string{e.ListenPeerURL, e.PeerURL} {
		if u, err := url.Parse(text); err == nil {
			if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
				return uint16(port)
			}
		}
	}
	return 0
}
