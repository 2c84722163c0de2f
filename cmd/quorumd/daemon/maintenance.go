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

// ownsMachine tells whether the agent may reboot this machine, and be asked before it goes down: it looks after the
// machine's own etcd. One that runs etcd as its child is one of many, in a container or on a desk.
func ownsMachine(conf config.Config) bool {
	return conf.Mode == config.ModeManage && conf.Etcd.Runner != config.RunnerProcess
}

// machine gives the way to reboot this host, or nil.
func machine(conf config.Config, log *slog.Logger) agent.Machine {
	if !ownsMachine(conf) {
		return nil
	}
	return systemd.NewLogind(systemd.LogindOptions{Logger: log})
}

// edges are the ways other than quorumctl by which maintenance is asked for.
type edges struct {
	reboots   *fleetlock.Server // nil: nobody is listened to
	inhibitor *systemd.Logind   // nil: the machine's shutdown is not waited for
	shutdown  shutdown.Reaction
	trigger   *autoreboot.Trigger // nil: nothing is asked for automatically
}

func openEdges(conf config.Config, a *agent.Agent, wall func() time.Time, log *slog.Logger) (edges, error) {
	var e edges
	if conf.FleetLock.Listen != "" {
		e.reboots = fleetlock.New(fleetlock.Options{Listen: conf.FleetLock.Listen, Host: a, Logger: log})
		if err := e.reboots.Listen(); err != nil {
			return e, exitError{exitUnavailable, err}
		}
	}
	if ownsMachine(conf) {
		e.inhibitor = systemd.NewLogind(systemd.LogindOptions{Logger: log})
		e.shutdown = shutdown.Reaction{Host: a, Logger: log, Loud: systemd.LevelEmergency}
	}
	if conf.Maintenance.AutoReboot && ownsMachine(conf) {
		settings, err := triggerSettings(conf.Maintenance)
		if err != nil {
			return e, exitError{exitConfig, err}
		}
		e.trigger = &autoreboot.Trigger{
			Host: a, Settings: settings, Wall: wall, Up: sinceBoot, Logger: log,
			Signs: autoreboot.Signs{
				Child: []string{self, execshim.Command}, Sentinel: sentinel, Ask: rebootProgram,
				Veto: conf.Maintenance.Veto,
			},
		}
	}
	return e, nil
}

func triggerSettings(m config.Maintenance) (s autoreboot.Settings, err error) {
	for _, text := range m.Windows {
		w, err := autoreboot.ParseWindow(text)
		if err != nil {
			return s, err
		}
		s.Windows = append(s.Windows, w)
	}
	for _, text := range m.Blackouts {
		b, err := autoreboot.ParseBlackout(text)
		if err != nil {
			return s, err
		}
		s.Blackouts = append(s.Blackouts, b)
	}
	return s, nil
}

// metrics gives what is counted here.
func (e edges) metrics() []prometheus.Collector {
	if e.reboots == nil {
		return nil
	}
	return []prometheus.Collector{e.reboots.Metrics()}
}

// run serves them until the context ends.
func (e edges) run(ctx context.Context, group *errgroup.Group) {
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

// close gives back what run has not, because it was not reached.
func (e edges) close() {
	if e.reboots != nil {
		e.reboots.Close()
	}
}
