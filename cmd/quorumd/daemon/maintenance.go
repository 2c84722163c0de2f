// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/quorumd/quorumd/agent"
	"github.com/quorumd/quorumd/agent/autoreboot"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/execshim"
	"github.com/quorumd/quorumd/agent/fleetlock"
	"github.com/quorumd/quorumd/agent/shutdown"
	"github.com/quorumd/quorumd/systemd"
)

const (
	sentinel      = "/run/reboot-required"
	rebootProgram = "/usr/bin/needs-restarting"
)

// ownsMachine reports whether the agent may reboot this machine and delay its shutdown. An agent that runs etcd as its
// child may not: it may be one of several, in a container or on a developer's machine.
func ownsMachine(conf config.Config) bool {
	return conf.Mode == config.ModeManage && conf.Etcd.Runner != config.RunnerProcess
}

// machine returns the interface to reboot this host, or nil if the agent may not reboot it.
func machine(conf config.Config, log *slog.Logger) agent.Machine {
	if !ownsMachine(conf) {
		return nil
	}
	return systemd.NewLogind(systemd.LogindOptions{Logger: log})
}

// maintenanceSources are the sources of maintenance requests other than quorumctl.
type maintenanceSources struct {
	reboots   *fleetlock.Server // nil: no listener
	inhibitor *systemd.Logind   // nil: shutdowns are not delayed
	shutdown  shutdown.Handler
	trigger   *autoreboot.Trigger // nil: no automatic reboots
}

func openMaintenanceSources(
	conf config.Config, a *agent.Agent, wall func() time.Time, log *slog.Logger,
) (maintenanceSources, error) {
	var e maintenanceSources
	if conf.FleetLock.Listen != "" {
		e.reboots = fleetlock.New(fleetlock.Options{Listen: conf.FleetLock.Listen, Host: a, Logger: log})
		if err := e.reboots.Listen(); err != nil {
			return e, exitError{exitUnavailable, err}
		}
	}
	if ownsMachine(conf) {
		e.inhibitor = systemd.NewLogind(systemd.LogindOptions{Logger: log})
		e.shutdown = shutdown.Handler{Host: a, Logger: log, Loud: systemd.LevelEmergency}
	}
	if conf.Maintenance.AutoReboot && ownsMachine(conf) {
		times, err := conf.Maintenance.Times()
		if err != nil {
			return e, exitError{exitConfig, err}
		}
		e.trigger = &autoreboot.Trigger{
			Host: a, Times: times, Wall: wall, Up: sinceBoot, Logger: log,
			Indicators: autoreboot.Indicators{
				Child: []string{self, execshim.Command}, Sentinel: sentinel, Query: rebootProgram,
				Veto: conf.Maintenance.Veto,
			},
		}
	}
	return e, nil
}

// metrics returns the collectors of the sources.
func (e maintenanceSources) metrics() []prometheus.Collector {
	if e.reboots == nil {
		return nil
	}
	return []prometheus.Collector{e.reboots.Metrics()}
}

// run starts the sources. They run until the context ends.
func (e maintenanceSources) run(ctx context.Context, group *errgroup.Group) {
	if e.reboots != nil {
		group.Go(func() error { return e.reboots.Serve(ctx) })
	}
	if e.inhibitor != nil {
		group.Go(func() error { e.inhibitor.Inhibit(ctx, e.shutdown); return nil })
	}
	if e.trigger != nil {
		group.Go(func() error { e.trigger.Run(ctx); return nil })
	}
}

// close closes the listener, which would stay open if run was never called.
func (e maintenanceSources) close() {
	if e.reboots != nil {
		e.reboots.Close()
	}
}
