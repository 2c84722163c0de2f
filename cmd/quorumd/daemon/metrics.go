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
	"github.com/quorumd/quorumd/agent/connlimit"
)

// endpoint is an HTTP listener. exporter-toolkit adds TLS and authentication from a web configuration file, as for
// other exporters.
type endpoint struct {
	listener net.Listener
	server   *http.Server
	conf     web.FlagConfig
}

const (
	// scrapesTotal and scrapesPerAddress limit the connections. Each network of metrics.allow has
	// scrapesPerNetwork reserved connections. A Prometheus server needs one.
	scrapesTotal      = 128
	scrapesPerAddress = 16
	scrapesPerNetwork = 4
)

// scrapeTimes returns time limits that suit Prometheus: a response may take twice the default scrape timeout, and a
// connection may be idle for longer than the default scrape interval.
func scrapeTimes() connlimit.Times {
	return connlimit.Times{
		Header: 5 * time.Second,
		Read:   10 * time.Second,
		Write:  20 * time.Second,
		Idle:   75 * time.Second,
	}
}

func listenMetrics(conf config.Metrics, version string, statusPage http.Handler, log *slog.Logger,
	metrics ...prometheus.Collector,
) (*endpoint, error) {
	registry, err := newRegistry(version, metrics)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", statusPage)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	// without this handler, the handler of "/" would serve the other methods
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "metrics are read-only", http.StatusMethodNotAllowed)
	})
	limits := connlimit.Limits{
		Total: scrapesTotal, PerAddress: scrapesPerAddress, Allow: conf.Networks(), Reserved: scrapesPerNetwork,
	}
	e, err := listenHTTP(conf.Listen, conf.WebConfig, limits, mux, log)
	if err != nil {
		return nil, fmt.Errorf("%w → change metrics.listen or correct metrics.webConfig", err)
	}
	return e, nil
}

// newRegistry returns a registry with these metrics, the Go and process metrics, and the version.
func newRegistry(version string, metrics []prometheus.Collector) (*prometheus.Registry, error) {
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
	return registry, nil
}

// listenHTTP listens on an address, with the TLS settings and passwords of a web configuration file, if one is set.
func listenHTTP(address, webConfig string, limits connlimit.Limits, handler http.Handler, log *slog.Logger) (*endpoint,
	error,
) {
	if err := web.Validate(webConfig); err != nil {
		return nil, exitError{exitConfig, fmt.Errorf("cannot use metrics.webConfig: %w", err)}
	}
	listener, err := connlimit.Listen(address, limits, log)
	if err != nil {
		return nil, exitError{exitUnavailable, fmt.Errorf("cannot listen for HTTP: %w", err)}
	}
	addresses, socket := []string{address}, false
	return &endpoint{
		listener: listener, server: connlimit.Server(handler, scrapeTimes(), log),
		conf: web.FlagConfig{WebListenAddresses: &addresses, WebSystemdSocket: &socket, WebConfigFile: &webConfig},
	}, nil
}

func (e *endpoint) serve(ctx context.Context, log *slog.Logger) error {
	stop := context.AfterFunc(ctx, func() { _ = e.server.Close() })
	defer stop()
	err := web.Serve(e.listener, e.server, &e.conf, log)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
