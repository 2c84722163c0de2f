// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/quorumd/quorumd/agent/bootstrap"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/connlimit"
)

// openBootstrap returns the exchange between the listed hosts, or nil if none are listed.
func openBootstrap(conf config.Config, trust func() *tls.Config) *bootstrap.Exchange {
	if len(conf.Bootstrap.Hosts) == 0 {
		return nil
	}
	var others []bootstrap.Host
	for _, h := range conf.Bootstrap.SortedHosts() {
		if h.Name != conf.Host.Name {
			others = append(others, bootstrap.Host{Name: h.Name, URL: h.URL})
		}
	}
	return bootstrap.New(bootstrap.Options{
		Others: others, Interval: conf.Timing.Interval, Timeout: conf.Timing.CallTimeout, TLS: trust, Now: sinceBoot,
	})
}

// exchangesTotal and exchangesPerAddress limit the connections. Each listed host needs one.
const (
	exchangesTotal      = 64
	exchangesPerAddress = 8
)

// listenBootstrap listens for requests of the listed hosts. For HTTPS it uses metrics.webConfig, but no
// other setting of the metrics.
func listenBootstrap(conf config.Config, exchange *bootstrap.Exchange, log *slog.Logger) (*endpoint, error) {
	if exchange == nil { // no hosts are listed
		return nil, nil
	}
	webConfig := ""
	if strings.HasPrefix(conf.Bootstrap.URL(conf.Host.Name), "https://") {
		webConfig = conf.Metrics.WebConfig
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+bootstrap.Path, exchange)
	e, err := listenHTTP(conf.Bootstrap.Listen, webConfig,
		connlimit.Limits{Total: exchangesTotal, PerAddress: exchangesPerAddress}, mux, log)
	if err != nil {
		return nil, fmt.Errorf("%w → change bootstrap.listen or the port in bootstrap.hosts on every host, "+
			"or correct metrics.webConfig", err)
	}
	return e, nil
}
