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
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/quorumd/quorumd/agent/config"
)

// scrapes is the listener for Prometheus. exporter-toolkit gives it TLS and authentication from
// the web configuration file that operators have for their other exporters.
type scrapes struct {
	listener net.Listener
	server   *http.Server
	conf     config.Metrics
}

func listenMetrics(conf config.Metrics, version string, metrics ...prometheus.Collector) (*scrapes, error) {
	if err := web.Validate(conf.WebConfig); err != nil {
		return nil, exitError{exitConfig, fmt.Errorf("cannot use metrics.webConfig: %w", err)}
	}
	registry := prometheus.NewRegistry()
	for _, c := range append(metrics,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quorumd_build_info", Help: "1, with the version as a label.", ConstLabels: prometheus.Labels{"version": version},
		}, func() float64 { return 1 }),
	) {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("cannot register metrics: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	listener, err := net.Listen("tcp", conf.Listen)
	if err != nil {
		return nil, exitError{exitUnavailable, fmt.Errorf("cannot listen for scrapes: %w; change metrics.listen", err)}
	}
	return &scrapes{
		listener: listener, conf: conf,
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second},
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
