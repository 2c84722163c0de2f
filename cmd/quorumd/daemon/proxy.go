// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/connlimit"
	"github.com/quorumd/quorumd/agent/proxy"
	"github.com/quorumd/quorumd/disk/atomicfile"
	"github.com/quorumd/quorumd/systemd"
)

const (
	// proxySpread is the time within which the connections to an excluded voter are closed.
	proxySpread = 10 * time.Second
	// spareFiles is the number of open files that the proxy needs in addition to two for each connection.
	spareFiles = 96
	// listEvery is the interval at which the agent rewrites an unchanged list of voters. The proxy treats a list that
	// is older than five minutes as outdated.
	listEvery = 30 * time.Second
	// The proxy's own files, in the directories that systemd assigns to it.
	savedList     = "voters.json"
	metricsSocket = "metrics.sock"
)

// Proxy relays the connections of this host's etcd clients until the context ends. It needs neither the agent nor its
// privileges, only the configuration and the directories of its own unit.
func Proxy(ctx context.Context, path string, log *slog.Logger) error {
	conf, err := config.Load(path)
	if err != nil {
		return err
	}
	if conf.Proxy == (config.Proxy{}) {
		return exitError{exitConfig, fmt.Errorf("cannot forward: neither proxy.listen nor proxy.learnerListen is set "+
			"in %s; set proxy.listen, for example to 127.0.0.1:2379, or disable quorumd-proxy.service", path)}
	}
	most, err := connections()
	if err != nil {
		return err
	}
	notifier := systemd.NewNotifier()
	ports := proxyPorts(conf, most, statusSetter(notifier, log), log)
	for _, f := range ports {
		if err := f.Listen(ctx); err != nil {
			return exitError{exitUnavailable, err}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	if dir := os.Getenv("RUNTIME_DIRECTORY"); dir != "" {
		if err := serveProxyMetrics(ctx, group, filepath.Join(dir, metricsSocket), ports[0], log); err != nil {
			return err
		}
	}
	log.Info("proxy started", "listen", conf.Proxy.Listen, "learner_listen", conf.Proxy.LearnerListen,
		"max_connections", most)
	if err := notifier.Ready(); err != nil {
		log.Debug("cannot notify systemd", "error", err)
	}
	for _, f := range ports {
		group.Go(func() error { return f.Serve(ctx) })
	}
	err = group.Wait()
	log.Info("proxy stopped")
	return err
}

// proxyPorts returns a proxy for each configured port: for the voters, and for this host's permanent learner. They
// split the limit of connections evenly. The first one sets the status of all of them.
func proxyPorts(conf config.Config, most int, set func(string), log *slog.Logger) (ports []*proxy.Proxy) {
	options := proxy.Options{
		MaxConnections: most, Spread: proxySpread,
		Loops:   runtime.GOMAXPROCS(0) - 1, // leaves one processor for everything else
		Elapsed: sinceBoot, Logger: log,
	}
	if conf.Proxy.Listen != "" && conf.Proxy.LearnerListen != "" {
		options.MaxConnections = max(1, most/2)
	}
	options.Changed = func(string) {
		var all []string
		for _, f := range ports {
			all = append(all, f.Status())
		}
		set(strings.Join(all, "; "))
	}
	if conf.Proxy.Listen != "" {
		voters := options
		voters.Listen, voters.Static = conf.Proxy.Listen, addresses(conf.Cluster.Endpoints)
		voters.List = filepath.Join(conf.Paths.Runtime, proxy.FileName)
		if dir := os.Getenv("STATE_DIRECTORY"); dir != "" {
			voters.Kept = filepath.Join(dir, savedList)
		}
		ports = append(ports, proxy.New(voters))
		options.Changed = nil
	}
	if conf.Proxy.LearnerListen != "" {
		learner := options
		learner.Listen, learner.Static = conf.Proxy.LearnerListen, addresses([]string{conf.Etcd.ClientURL})
		ports = append(ports, proxy.New(learner))
	}
	return ports
}

// connections returns the number of connections that the limit of open files allows.
func connections() (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("cannot read the open-file limit: %w", err)
	}
	const enough = 1 << 20
	most := (int(min(limit.Cur, enough)) - spareFiles) / 2
	if most < 1 {
		return 0, fmt.Errorf("cannot forward with a limit of %d open files; raise LimitNOFILE= of the unit", limit.Cur)
	}
	return most, nil
}

// addresses returns the hosts and ports of the endpoints, which config.Load has validated.
func addresses(endpoints []string) []string {
	var all []string
	for _, e := range endpoints {
		if u, err := url.Parse(e); err == nil && u.Port() != "" {
			all = append(all, net.JoinHostPort(u.Hostname(), u.Port()))
		}
	}
	return all
}

// statusSetter returns a function that sets the unit's status line in systemd if the text has changed.
func statusSetter(notifier *systemd.Notifier, log *slog.Logger) func(string) {
	var last string
	return func(text string) {
		if text == last {
			return
		}
		last = text
		if err := notifier.Status(text); err != nil {
			log.Debug("cannot notify systemd", "error", err)
		}
	}
}

// serveProxyMetrics serves the proxy's metrics on a socket that every user of this host may connect to. Surplus
// connections wait until another one ends, so that they take no files from the clients' connections.
func serveProxyMetrics(ctx context.Context, group *errgroup.Group, path string, f *proxy.Proxy,
	log *slog.Logger,
) error {
	registry := prometheus.NewRegistry()
	if err := errors.Join(registry.Register(f.Metrics()),
		registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))); err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}
	// a killed process may have left the socket behind
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot serve metrics: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", path)
	if err == nil {
		err = os.Chmod(path, 0o666)
	}
	if err != nil {
		return fmt.Errorf("cannot serve metrics: %w", err)
	}
	listener = netutil.LimitListener(listener, scrapesPerAddress)
	mux := http.NewServeMux()
	bounds := promhttp.HandlerOpts{MaxRequestsInFlight: scrapesPerAddress}
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, bounds))
	server := connlimit.Server(mux, scrapeTimes(), log)
	group.Go(func() error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return nil
}

// voters is the source of the list of voters for the proxy. Voters returns false while the voters are unknown.
type voters interface {
	Voters() (proxy.List, bool)
}

// writeVoters writes the list of voters for the proxy whenever it changes, and every listEvery, in parallel with the
// loop. While the cluster state is unknown, it writes nothing, and the last list becomes outdated.
func writeVoters(ctx context.Context, from voters, path string, every time.Duration, log *slog.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last, failed string
	var at time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		list, ok := from.Voters()
		if !ok {
			continue
		}
		same := list
		same.Revision = 0
		text, err := same.Encode()
		if err != nil || string(text) == last && sinceBoot()-at < listEvery {
			continue
		}
		var why string
		if err := writeList(path, list); err != nil {
			why = err.Error()
		} else {
			last, at = string(text), sinceBoot()
		}
		if why != failed && why != "" {
			log.Error("cannot write the list of voters; the proxy keeps the last list", "error", why)
		}
		failed = why
	}
}

func writeList(path string, list proxy.List) error {
	text, err := list.Encode()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(path, text, 0o644, false); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
