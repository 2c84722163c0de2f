// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"net"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/discovery"
	"github.com/quorumd/quorumd/agent/externalcheck"
	"github.com/quorumd/quorumd/health"
)

// discover starts a goroutine that updates the client with the members' endpoints, if a source for them is configured.
func discover(ctx context.Context, group *errgroup.Group, c config.Cluster, client *cluster.Client, log *slog.Logger) {
	if !c.Discovery.Any() {
		return
	}
	scheme, _, _ := strings.Cut(c.Endpoints[0], ":")
	opt := discovery.Options{
		Source: sourceOf(c.Discovery, scheme), Scheme: scheme, Interval: c.Discovery.Interval,
		Timeout: c.Discovery.Timeout, Report: client.Discovered, Logger: log,
	}
	group.Go(func() error { discovery.Run(ctx, opt); return nil })
}

func sourceOf(d config.Discovery, scheme string) discovery.Source {
	switch {
	case d.SRV != "":
		return discovery.SRV(net.DefaultResolver, d.SRV, scheme)
	case d.File != "":
		return discovery.File(d.File)
	}
	return discovery.Program(func(ctx context.Context) ([]byte, error) {
		return externalcheck.Output(ctx, []string{self, externalcheck.Command}, d.Program, d.Timeout)
	})
}

// discovered returns a function that reads the last result of discovery; nil without discovery.
func discovered(c config.Cluster, client *cluster.Client) func() health.DiscoveryReading {
	if !c.Discovery.Any() {
		return nil
	}
	return func() health.DiscoveryReading { return discoveryReading(client.LastDiscovered()) }
}

// discoveryReading returns the last result in the form that package health uses.
func discoveryReading(n int, asked bool, err error) health.DiscoveryReading {
	d := health.DiscoveryReading{Set: true, Asked: asked, Endpoints: n}
	if err != nil {
		d.Failed = err.Error()
	}
	return d
}
