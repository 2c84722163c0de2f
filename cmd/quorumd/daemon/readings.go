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
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/health/kernellog"
	"github.com/quorumd/quorumd/health/sensors"
	"github.com/quorumd/quorumd/health/smart"
	"github.com/quorumd/quorumd/systemd/rootfile"
)

const (
	// kernelEvery is the interval of the kernel's readings, and hardwareEvery the interval of the readings of drives
	// and sensors.
	kernelEvery   = 10 * time.Second
	hardwareEvery = time.Minute

	kernelOutdated = "kernel readings are out of date"
)

// readings declares what this host reads for its health state, except the probe and etcd.
func readings(e config.Etcd, kernel *sensors.Reader, booted boots) []observe.Source {
	all := []observe.Source{
		observe.Reading(kernelEvery, kernelOutdated,
			func(in *health.Input) *health.MachineReading { return &in.Machine },
			func(context.Context) health.MachineReading { return booted.with(kernel.Read()) }),
		observe.Reading(kernelEvery, kernelOutdated,
			func(in *health.Input) *health.LinkReading { return &in.Links }, linkReader(kernel, e)),
		observe.DeviceReading(kernelEvery, kernelOutdated,
			func(in *health.Input) *health.DevicesReading { return &in.Devices }, kernel.Devices),
		observe.Reading(hardwareEvery, "drive health data is out of date",
			func(in *health.Input) *health.HardwareReading { return &in.Hardware }, recordedHardware),
		// This is a separate reading, because a hung drive may block its temperature sensor while the drive's other
		// readings are needed most.
		observe.Reading(hardwareEvery, "sensor readings are out of date",
			func(in *health.Input) *health.Several[health.Sensor] { return &in.Hardware.Sensors },
			func(context.Context) health.Several[health.Sensor] { return sensors.New().Sensors() }),
	}
	if e.WALDir != "" {
		all = append(all, observe.DeviceReading(kernelEvery, "the file system of etcd's database does not respond",
			func(in *health.Input) *health.DatabaseReading {
				in.Database.Apart = true // until the first reading, assume a separate file system
				return &in.Database
			},
			func(log uint64) health.DatabaseReading { return kernel.Database(e.DataDir, log) }))
	}
	return all
}

// recordedHardware returns the recorded readings of the drives, the kernel's messages about devices, and chrony's time
// sources. It queries no device.
func recordedHardware(context.Context) health.HardwareReading {
	logged, hung := kernellog.Read(rootfile.Root(), filepath.Join(kernellog.Dir, kernellog.File), disk.Monotonic())
	return health.HardwareReading{
		Drives: smart.Read(rootfile.Root(), filepath.Join(smart.Dir, smart.File), smart.Monotonic()),
		Time:   sensors.New().Time(), Logged: logged, TasksHung: hung,
	}
}

// peerHost returns the address or name of etcd's peer traffic: the address on which etcd listens for peers, or the host
// of its peer URL if the listen URL contains a name or the unspecified address.
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

// peersEvery is the interval at which the peer connections are read. Each read makes the kernel walk through all
// connections of the host, and the check covers minutes, so reading more often would cost more than it helps.
const peersEvery = 30 * time.Second

// linkReader returns a reader of the interfaces and the connections that carry etcd's peer traffic. Only one goroutine
// may use it at a time.
func linkReader(kernel *sensors.Reader, e config.Etcd) func(context.Context) health.LinkReading {
	host, port := peerHost(e), peerPort(e)
	peers := health.PeersReading{Absent: "etcd's peer URL has no port"}
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
