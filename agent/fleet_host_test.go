// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

type fleetHost struct {
	f     *fleet
	name  string
	agent *Agent
	end   func()

	mu     sync.Mutex
	active bool
	began  time.Duration // when its etcd was started
	member uint64
	files  map[string][]byte
	hang   chan struct{} // if set, writes of files wait until it is closed
	late   chan error    // if set, a stop of etcd returns what is sent here
	mute   bool          // its unit does not report when etcd was started
	starts int           // how many times its etcd was started
	last   time.Duration // when the disk was last read
	reads  int
	slow   time.Duration // minimum latency of a write
	fsyncs fsyncCount

	sensors        func() health.MachineReading
	externalChecks observe.ExternalChecks
	config         string // in addition to the common configuration
	protectedCache bool
	devices        func(device uint64) health.DevicesReading
	metrics        func(ctx context.Context) health.EtcdReading
	// database observes the file system of etcd's database; nil if it is also the WAL's
	database func(log uint64) health.DatabaseReading
	links    func(ctx context.Context) health.LinkReading
	network  observe.Network
	// hardware returns the drives' data, and chips the sensors' data; nil if they are not read.
	hardware func() health.HardwareReading
	chips    func() health.Several[health.Sensor]
}

// boot starts the host's agent with this boot ID.
func (h *fleetHost) boot(id string) {
	f, name := h.f, h.name
	text := fmt.Appendf(nil, fleetConfig, name, "rack-"+name[len(name)-1:], f.standbys)
	c, err := config.Parse("test", append(text, h.config...))
	if err != nil {
		f.t.Fatal(err)
	}
	c.Disk.ProtectedCache = h.protectedCache
	h.agent, err = New(Options{
		Config: c, Instance: id, BootID: id, Version: "test",
		Etcd: f.etcd.of(name), Unit: h, Probe: (*fleetProbe)(h), Data: (*fleetData)(h), Files: (*fleetFiles)(h),
		Sources: observe.Sources{
			EtcdVersion:    func(context.Context) (string, error) { return "3.6.16", nil },
			ExternalChecks: h.externalChecks,
			EtcdMetrics:    h.metrics, Network: h.network, MemberMetrics: f.memberMetrics, Readings: h.readings(),
		},
		Now: f.now, Monotonic: f.now, Wall: time.Now, Logger: slog.New(slog.DiscardHandler),
		Stepping: func(step policy.Step, done bool) {
			if r := h.agent.publisher.Current(); !done && !r.Fresh() {
				f.t.Errorf("%s takes %s based on observations of an earlier round", name, step)
			}
		},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	h.agent.observer.SetPace(f.pace)
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.agent.Run(ctx) }()
	h.end = func() { cancel(); <-done }
}

// readings returns a source for each reading that the host has.
func (h *fleetHost) readings() (all []observe.Source) {
	if h.sensors != nil {
		all = append(all, observe.Reading(10*time.Second, "kernel readings are out of date",
			func(in *health.Input) *health.MachineReading { return &in.Machine },
			func(context.Context) health.MachineReading { return h.sensors() }))
	}
	if h.links != nil {
		all = append(all, observe.Reading(10*time.Second, "kernel readings are out of date",
			func(in *health.Input) *health.LinkReading { return &in.Links }, h.links))
	}
	if h.devices != nil {
		all = append(all, observe.DeviceReading(10*time.Second, "kernel readings are out of date",
			func(in *health.Input) *health.DevicesReading { return &in.Devices }, h.devices))
	}
	if h.database != nil {
		all = append(all, observe.DeviceReading(10*time.Second, "the file system of etcd's database does not respond",
			func(in *health.Input) *health.DatabaseReading { return &in.Database }, h.database))
	}
	if h.hardware != nil {
		all = append(all, observe.Reading(time.Minute, "drive health data is out of date",
			func(in *health.Input) *health.HardwareReading { return &in.Hardware },
			func(context.Context) health.HardwareReading { return h.hardware() }))
	}
	if h.chips != nil {
		all = append(all, observe.Reading(time.Minute, "sensor readings are out of date",
			func(in *health.Input) *health.Several[health.Sensor] { return &in.Hardware.Sensors },
			func(context.Context) health.Several[health.Sensor] { return h.chips() }))
	}
	return all
}

// die ends the agent before it can clean up.
func (h *fleetHost) die() {
	h.f.etcd.cutOff(true)
	h.end()
	h.f.etcd.cutOff(false)
}

func (h *fleetHost) runs() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.active
}

// losePower ends the agent before it can clean up, and loses everything in memory.
func (h *fleetHost) losePower() {
	h.die()
	maps.DeleteFunc(h.files, func(path string, _ []byte) bool { return strings.HasPrefix(path, "/run/") })
}

func (h *fleetHost) Status(context.Context) (systemd.Status, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := systemd.Status{LoadState: "loaded", State: systemd.Inactive}
	if h.active {
		s.State = systemd.Active
		if !h.mute {
			s.Since = max(h.f.now()-h.began, 1) // 0 means unknown
		}
	}
	return s, nil
}

func (h *fleetHost) Start(context.Context) error {
	id := h.f.etcd.started(h.name, "http://"+h.name+":2380")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.active, h.member, h.began = true, id, h.f.now()
	h.starts++
	return nil
}

func (h *fleetHost) Stop(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if late := h.late; late != nil {
		h.mu.Unlock()
		err := <-late
		h.mu.Lock()
		if err != nil {
			return err
		}
	}
	h.active = false
	return nil
}

func (h *fleetHost) Restart(ctx context.Context) error {
	return errors.Join(h.Stop(ctx), h.Start(ctx))
}

func (h *fleetHost) SetEnvironment(context.Context, map[string]string) error { return nil }

type fleetProbe fleetHost

// fleetDevice is the device number of every host's data.
const fleetDevice = 0x801

func (p *fleetProbe) Read() disk.Reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.f.now()
	p.reads++
	r := disk.Reading{
		Alive: true, NextDirect: time.Second, NextWAL: time.Second,
		Usage: &disk.Usage{Total: 1 << 40, Free: 1 << 39}, Device: fleetDevice,
	}
	latency := 3800 * time.Microsecond
	if p.reads/30%2 == 1 { // in every second minute: 30 readings take a minute
		latency = 4200 * time.Microsecond
	}
	latency = max(latency, p.slow)
	n := 2
	if p.last == 0 {
		n = 40
	}
	for i := range n {
		at := now - time.Duration(n-i)*time.Millisecond
		r.Samples = append(r.Samples, disk.Sample{Lane: disk.LaneDirect, End: at, Latency: latency},
			disk.Sample{Lane: disk.LaneWAL, End: at, Latency: latency})
	}
	p.last = now
	return r
}

func (p *fleetProbe) InFlight() (time.Duration, string) { return 0, "" }

func (p *fleetProbe) SetBurst(bool) {}

type fleetData fleetHost

func (d *fleetData) Inspect(context.Context) (datadir.Contents, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.member == 0 {
		return datadir.Contents{Empty: true, Free: 1 << 39}, nil
	}
	return datadir.Contents{ClusterID: 1, MemberID: d.member, Free: 1 << 39}, nil
}

func (d *fleetData) MoveAside(context.Context) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.member = 0
	return nil, nil
}

type fleetFiles fleetHost

func (f *fleetFiles) MakeDir(string) error { return nil }

func (f *fleetFiles) Read(path string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if data, ok := f.files[path]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

func (f *fleetFiles) Write(path string, data []byte, _ bool) error {
	f.mu.Lock()
	hang := f.hang
	f.mu.Unlock()
	if hang != nil {
		<-hang
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files[path] = data
	return nil
}

func (f *fleetFiles) Remove(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, path)
	return nil
}
