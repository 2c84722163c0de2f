// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package daemon is the program quorumd as a package, so that tests can run it. It connects the agent, its control
// socket and its metrics.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/common/version"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent"
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control/server"
	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/execshim"
	"github.com/quorumd/quorumd/agent/fileaccess"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/agent/page"
	"github.com/quorumd/quorumd/agent/peertls"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/proxy"
	"github.com/quorumd/quorumd/agent/recovery/rebuild"
	"github.com/quorumd/quorumd/contrib/prometheus"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/disk/blockdevice"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/health/certificates"
	"github.com/quorumd/quorumd/health/etcdflags"
	"github.com/quorumd/quorumd/health/etcdmetrics"
	"github.com/quorumd/quorumd/health/sensors"
	"github.com/quorumd/quorumd/systemd"
	"github.com/quorumd/quorumd/systemd/roothelper"
)

const tlsEvery = 15 // number of intervals of the loop between two reads of the TLS files

// Options are the start options of a daemon.
type Options struct {
	Config  string // path of the configuration
	RunAs   string // socket of the service that runs children as etcd's user; empty: they run as the agent's user
	Helper  string // socket of the service that acts as root; empty: the agent acts with its own privileges
	Version string
	Logger  *slog.Logger
	// Stepping and Wall are for tests: see agent.Options. Both may be nil.
	Stepping func(step policy.Step, done bool)
	Wall     func() time.Time
}

// Version returns the version that the linker has set, or else the version of the Go module.
func Version() string {
	if version.Version != "" {
		return version.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}

// Run runs the agent until the context ends. The calling program must first call Child, because the agent's children
// run that same program. ExitCode returns the exit code for Run's error.
func Run(ctx context.Context, opt Options) error {
	log := opt.Logger
	conf, err := loadConfig(opt.Config, log)
	if err != nil {
		return err
	}
	orders := ordersTo(opt)
	hookRunner, programs, err := openPrograms(conf, opt, orders)
	if err != nil {
		return err
	}
	parts, err := open(conf, children(opt.Config, opt.RunAs), orders, hookRunner, log)
	if err != nil {
		return err
	}
	defer parts.close()
	parts.recovery.Fetch = fetchCommand(conf, opt.Config)
	metrics, err := etcdmetrics.New(metricsURL(conf.Etcd), parts.etcd.TLS)
	if err != nil {
		return err
	}
	sweepRestoreTest(conf, log)
	notifier := systemd.NewNotifier()
	wall := wallOf(opt)
	boots := openBoots(conf.Paths.State, parts.bootID, wall, log)
	defer boots.end(ctx, log)
	prober := network.New(network.Options{TLS: parts.etcd.TLS, Now: sinceBoot})
	exchange := openBootstrap(conf, parts.etcd.TLS)
	options := agent.Options{
		Config: conf, Instance: parts.instance, BootID: parts.bootID, Version: opt.Version,
		Etcd: parts.etcd, Unit: parts.unit, Probe: parts.probe, Data: parts.data, Recovery: parts.recovery,
		Hold: startGuardOf(conf, orders), Machine: machine(conf, log), Hooks: programs,
		DeleteOldDatabase: programs.Clean, Maintenance: parts.etcd,
		Snapshots: openSnapshots(conf, opt.Config, log),
		Sources: observe.Sources{
			EtcdVersion: binaryVersion(conf.Etcd), Discovery: discovered(conf.Cluster, parts.etcd),
			Certificates: certificates.New(certificateFiles(conf), parts.etcd.TLS, wall).Read,
			EtcdSettings: etcdSettings(conf.Etcd).Read, MaxLearners: etcdSettings(conf.Etcd).MaxLearners,
			NextMaxLearners: etcdSettings(conf.Etcd).NextMaxLearners,
			NextEtcd:        nextEtcd(conf.Etcd, parts.data), PeerFiles: etcdSettings(conf.Etcd).PeerFiles,
			PeerTLS:     peerTLS(conf, opt),
			EtcdMetrics: metrics.Read, MemberMetrics: memberMetrics(parts.etcd),
			BlockProgress: parts.blocks.Progress, Readings: readings(conf.Etcd, sensors.New(), boots),
			ExternalChecks: openChecks(conf.Checks, log), Network: prober,
			SinceRenewal: parts.etcd.SinceRenewal, Requests: parts.etcd, Hashes: parts.etcd, Spool: spoolReader(conf),
		},
		Now: sinceBoot, Wall: wall, Logger: log,
		Stepping: opt.Stepping, Rounded: notifySystemd(notifier, log),
	}
	if exchange != nil { // a nil pointer in the interface would not compare equal to nil
		options.BootstrapAnswers = exchange
	}
	a, err := agent.New(options)
	if err != nil {
		return err
	}
	programs.Ended = a.Wake
	socket := server.New(server.Options{
		Socket: conf.Control.Socket, Group: conf.Control.Group, Backend: a, Logger: log,
	})
	if err := socket.Listen(); err != nil {
		return err
	}
	defer socket.Close() //nolint:errcheck // Serve, if it ran, has already closed it
	sources, err := openMaintenanceSources(conf, a, wall, log)
	if err != nil {
		return err
	}
	defer sources.close()
	statusPage, err := page.New(a, aboutPage(conf))
	if err != nil {
		return err
	}
	scrapes, err := listenMetrics(conf.Metrics, opt.Version, statusPage, log, append(sources.metrics(), a.Metrics())...)
	if err != nil {
		return err
	}
	exchangeServer, err := listenBootstrap(conf, exchange, log)
	if err != nil {
		return err
	}
	log.Info("quorumd started", "version", opt.Version, "host", conf.Host.Name, "id", conf.Host.ID, "cluster",
		conf.Cluster.Name, "mode", conf.Mode)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.Run(ctx) })
	group.Go(func() error { return socket.Serve(ctx) })
	group.Go(func() error { prober.Run(ctx); return nil })
	group.Go(func() error { return scrapes.serve(ctx, log) })
	sources.run(ctx, group)
	if exchange != nil {
		group.Go(func() error { exchange.Run(ctx); return nil })
		group.Go(func() error { return exchangeServer.serve(ctx, log) })
	}
	discover(ctx, group, conf.Cluster, parts.etcd, log)
	if conf.Proxy.Listen != "" {
		path := filepath.Join(conf.Paths.Runtime, proxy.FileName)
		group.Go(func() error { writeVoters(ctx, a, path, conf.Timing.Interval, log); return nil })
	}
	group.Go(func() error { parts.etcd.ReloadEvery(ctx, tlsEvery*conf.Timing.Interval); return nil })
	err = group.Wait()
	_ = notifyEnd(ctx, notifier) // the agent ends even if systemd cannot be notified
	log.Info("quorumd stopped; etcd left as it is")
	return err
}

// peerTLS returns the tester of the configured peer certificate; nil if none is configured.
func peerTLS(conf config.Config, opt Options) observe.PeerTLS {
	files := conf.PeerFiles()
	if !files.Complete() {
		return nil
	}
	return peertls.Tester{
		Command: children(opt.Config, opt.RunAs), Files: files, PeerURL: conf.Etcd.PeerURL, Host: conf.Host.Name,
	}
}

// etcdSettings returns the reader of the running etcd's settings.
func etcdSettings(c config.Etcd) etcdflags.Reader {
	return etcdflags.Reader{Environment: c.Environment, EnvironmentFile: c.EnvironmentFile, Program: c.Binary}
}

// aboutPage returns the information that the status page shows in addition to the status.
func aboutPage(conf config.Config) page.About {
	return page.About{
		FleetLock: conf.FleetLock.Listen, Runbooks: prometheus.Runbooks(), ByCode: prometheus.RunbooksByCode(),
	}
}

// wallOf returns the wall clock, which tests replace.
func wallOf(opt Options) func() time.Time {
	if opt.Wall == nil {
		return time.Now
	}
	return opt.Wall
}

func binaryVersion(e config.Etcd) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return cluster.BinaryVersion(ctx, []string{self, execshim.Command}, e.Binary)
	}
}

// memberMetrics returns a function that reads the metrics of the member at a URL.
func memberMetrics(etcd *cluster.Client) func(context.Context, string) health.EtcdReading {
	return func(ctx context.Context, url string) health.EtcdReading {
		return etcdmetrics.ReadAt(ctx, url, etcd.TLS)
	}
}

func metricsURL(e config.Etcd) string { return cmp.Or(e.MetricsURL, e.ClientURL) }

// loadConfig reads the configuration and the files that it names, and fills in this host's identity.
func loadConfig(path string, log *slog.Logger) (config.Config, error) {
	conf, err := config.Load(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return conf, err
	case err != nil:
		return conf, exitError{exitConfig, err}
	}
	for _, warning := range conf.Warnings {
		log.Warn("configuration warning", "warning", warning)
	}
	dated, err := checkFiles(conf)
	if err != nil {
		return conf, err
	}
	owner := fileaccess.CurrentUser()
	if os.Geteuid() == 0 { // an operator runs quorumd by hand: the remedy must name the user of the service as owner
		owner = fileaccess.KeyOwner(conf, fileaccess.ServiceUser(context.Background(), path), owner)
	}
	for _, problem := range append(fileaccess.CheckKey(conf, owner), dated...) {
		log.Error("configuration error", "problem", problem.String())
	}
	if conf.Host.ID == "" {
		if conf.Host.ID, err = config.HostID(); err != nil {
			return conf, exitError{exitConfig, err}
		}
	}
	return conf, nil
}

// checkFiles checks the files that the configuration names. It returns certificates that are not valid now in dated,
// and other problems as the error. With an expired certificate the agent still starts, serves its status, and loads the
// renewed certificate by itself. If the agent exited with code 78 instead, it would stay down until an operator
// restarted it.
func checkFiles(conf config.Config) (dated []config.Problem, err error) {
	problems, _ := errors.AsType[config.Errors](conf.CheckFiles())
	dated, others := problems.Dated()
	for _, of := range conf.EtcdDates() {
		// CheckFiles has already reported those of etcd's files that this user can read
		if !slices.Contains(dated, of) {
			dated = append(dated, of)
		}
	}
	if len(others) > 0 {
		return nil, append(others, dated...)
	}
	return dated, nil
}

// parts are the resources of an agent.
type parts struct {
	etcd     *cluster.Client
	unit     unit
	probe    *disk.Probe
	data     datadir.Dir
	recovery *rebuild.Files
	blocks   *blockdevice.Devices
	instance string
	bootID   string
}

// unit is etcd's unit. It must be closed.
type unit interface {
	systemd.Unit
	Close() error
}

func open(conf config.Config, child []string, orders *roothelper.Client, hooks *hooks.Launcher,
	log *slog.Logger,
) (p parts, err error) {
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.bootID, err = systemd.BootID(); err != nil {
		return p, err
	}
	lockMemory(log)
	if p.instance, err = hoststate.Instance(conf.Paths.Runtime); err != nil {
		return p, err
	}
	if p.blocks, err = blockdevice.New("/proc", "/sys"); err != nil {
		return p, err
	}
	if p.unit, err = openUnit(conf, orders, hooks, log); err != nil {
		return p, err
	}
	if p.etcd, err = cluster.New(clusterOptions(conf, log)); err != nil {
		return p, err
	}
	p.data = datadir.Dir{Command: child, DataDir: conf.Etcd.DataDir, WALDir: conf.Etcd.WALDir}
	p.recovery = &rebuild.Files{Command: child, Place: placeOf(conf), Etcd: conf.Etcd.Binary}
	options := probeOptions(conf, child)
	options.Logger = log
	p.probe, err = disk.StartProbe(options)
	return p, err
}

func placeOf(conf config.Config) rebuild.Place {
	return rebuild.Place{DataDir: conf.Etcd.DataDir, WALDir: conf.Etcd.WALDir}
}

func probeOptions(conf config.Config, child []string) disk.Options {
	return disk.Options{
		Command: append(child, probeCommand), Dir: conf.Disk.ProbeDir, Target: probeTarget(conf),
		DirectInterval: conf.Disk.DirectInterval, WALInterval: conf.Disk.WALInterval, BurstRate: conf.Disk.QualifyRate,
	}
}

// lockMemory locks the agent's pages in memory, so that it never waits for a hung disk to read its own program. It does
// so only as root or if locked memory is unlimited: under a limit, a later mapping could fail and end the agent.
func lockMemory(log *slog.Logger) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit)
	if err == nil && limit.Cur != unix.RLIM_INFINITY && os.Geteuid() != 0 {
		err = errors.New("locked memory is limited")
	}
	if err == nil {
		err = unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT)
	}
	if err != nil {
		log.Warn("cannot lock memory, so a hung disk may block the agent; set LimitMEMLOCK=infinity", "error", err)
	}
}

func (p parts) close() {
	if p.probe != nil {
		p.probe.Close()
	}
	if p.etcd != nil {
		_ = p.etcd.Close()
	}
	if p.unit != nil {
		_ = p.unit.Close()
	}
}

func openUnit(conf config.Config, orders *roothelper.Client, hooks *hooks.Launcher, log *slog.Logger) (unit, error) {
	switch conf.Etcd.Runner {
	case config.RunnerExternal:
		return openExternal(conf, orders, hooks)
	case config.RunnerSystemd:
		o := systemd.Options{Unit: conf.Etcd.Unit, EnvironmentFile: conf.Etcd.EnvironmentFile, Logger: log}
		if orders != nil {
			o.Orders = orders
		}
		return systemd.NewService(o)
	}
	return systemd.NewProcess(systemd.ProcessOptions{
		Name: "etcd", Argv: []string{conf.Etcd.Binary}, Dir: conf.Paths.State,
		LogFile: conf.Etcd.LogFile, StopTimeout: conf.Etcd.StopTimeout, Logger: log,
	})
}
