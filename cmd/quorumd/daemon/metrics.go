// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/gate"
)

// scrapes is the listener for Prometheus. exporter-toolkit gives it TLS and authentication from
// the web configuration file that operators have for their other exporters.
type scrapes struct {
	listener net.Listener
	server   *http.Server
	conf     config.Metrics
}

const (
	// scrapesInAll and scrapesPerAddress bound the connections; a Prometheus has one.
	scrapesInAll      = 128
	scrapesPerAddress = 16
)

// scrapeTimes are twice what Prometheus allows a scrape, and more than it waits between two.
func scrapeTimes() gate.Times {
	return gate.Times{Header: 5 * time.Second, Read: 10 * time.Second, Write: 20 * time.Second, Idle: 75 * time.Second}
}

func listenMetrics(conf config.Metrics, version string, shown http.Handler, log *slog.Logger,
	metrics ...prometheus.Collector,
) (*scrapes, error) {
	if err := web.Validate(conf.WebConfig); err != nil {
		return nil, exitError{exitConfig, fmt.Errorf("cannot use metrics.webConfig: %w", err)}
	}
	registry := prometheus.NewRegistry()
	for _, c := range append(metrics,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quorumd_build_info", Help: "1, with the version as a label.",
			ConstLabels: prometheus.Labels{"version": version},
		}, func() float64 { return 1 }),
	) {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("cannot register metrics: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/", shown)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { // else it were one more unknown path
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "metrics are only read", http.StatusMethodNotAllowed)
	})
	limits := gate.Limits{InAll: scrapesInAll, PerAddress: scrapesPerAddress}
	for _, network := range conf.Allow {
		allowed, err := netip.ParsePrefix(network)
		if err != nil { // the configuration was checked
			return nil, exitError{exitConfig, fmt.Errorf("cannot use metrics.allow: %w", err)}
		}
		limits.Allow = append(limits.Allow, allowed)
	}
	listener, err := gate.Listen(conf.Listen, limits, log)
	if err != nil {
		return nil, exitError{exitUnavailable, fmt.Errorf("cannot listen for scrapes: %w; change metrics.listen", err)}
	}
	return &scrapes{
		listener: listener, conf: conf,
		server: gate.Server(mux, scrapeTimes(), log),
	}, nil
}

func (s *scrapes) serve(ctx context.Context, log *slog.Logger) error {
	stop := context.AfterFunc(ctx, func() { _ = s.server.Close() })
	defer stop()
	addresses, socket := []string{s.conf.Listen}, false
	err := web.Serve(s.listener, s.server, &web.FlagConfig{
		WebListenAddresses: &addresses, WebSystemdSocket: &socket, WebConfigFile: &s.conf.WebConfig,
	}, log)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
