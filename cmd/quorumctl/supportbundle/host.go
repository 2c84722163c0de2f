// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Host describes the sources on a host, in addition to quorumd's own documents.
type Host struct {
	Units           []string // systemd units: quorumd's and etcd's
	Unit            string   // etcd's unit; empty unless systemd runs etcd
	Etcd            string   // path of the etcd binary
	EnvironmentFile string
	DataDir         string
	LogFile         string // etcd's log if quorumd runs etcd as a child process
	Metrics         string // URL of etcd's metrics
	OwnMetrics      string // URL of quorumd's metrics
	PrivateFile     bool   // quorumd's metrics require a password and are left out
	TLS             TLS
	Certificates    []string
}

// process returns a function that reads the command line and etcd variables of a unit's main process. Its errors
// distinguish an unknown process from a unit that does not run.
func process(unit string) func(context.Context) ([]byte, error) {
	ask := Program("systemctl", "show", "--property=MainPID", "--value", "--", unit)
	return func(ctx context.Context) ([]byte, error) {
		said, err := ask(ctx)
		pid := strings.TrimSpace(string(said))
		switch {
		case err != nil:
			return nil, fmt.Errorf("cannot find the process of %s: %w", unit, err)
		case pid == "" || strings.Trim(pid, "0123456789") != "":
			return nil, fmt.Errorf("cannot find the process of %s: systemctl printed %.30q", unit, pid)
		case strings.Trim(pid, "0") == "":
			return nil, fmt.Errorf("%s is not running", unit)
		}
		return startOf(pid, "ETCD_")
	}
}

// journalLines and journalSince limit the part of a journal that is read.
const (
	journalLines = "4000"
	journalSince = "-24h"
)

// OfHost returns the sources on this host.
func OfHost(h Host) []Source {
	list := []Source{
		{Name: "etcd-version.txt", Get: Program(h.Etcd, "--version")},
		{Name: "etcd-metrics.txt", Get: Metrics(strings.TrimRight(h.Metrics, "/")+"/metrics", h.TLS, "etcd_server_",
			"etcd_disk_", "etcd_network_peer_", "etcd_mvcc_db_", "etcd_debugging_mvcc_", "process_")},
		{Name: "etcd-load.txt", Get: etcdLoad(Metrics(strings.TrimRight(h.Metrics, "/")+"/metrics", h.TLS,
			loadMetrics()...))},
		{Name: "etcd-environment.txt", Get: FromFile(h.EnvironmentFile, false)},
		{Name: "kernel.txt", Get: kernel(h)},
	}
	if len(h.Certificates) > 0 {
		list = append(list, Source{Name: "certificates.txt", Get: Certificates(h.Certificates...)})
	}
	if !h.PrivateFile {
		list = append(list, Source{Name: "quorumd-metrics.txt", Get: Metrics(h.OwnMetrics+"/metrics", TLS{}, "quorumd_",
			"process_", "go_mem", "go_goroutines")})
	}
	if h.LogFile != "" {
		return append(list, Source{Name: "etcd.log", Get: FromFile(h.LogFile, true), End: true})
	}
	list = append(list, Source{Name: "etcd-process.txt", Get: process(h.Unit)},
		Source{Name: "units.txt", Get: units(h.Units)})
	for _, unit := range h.Units {
		name := "journal-" + strings.TrimSuffix(unit, ".service") + ".txt"
		list = append(list, Source{Name: name, End: true, Get: journal(unit)})
	}
	return list
}

// journal returns the last lines of a unit's journal. An empty journal is an error, because journalctl does not report
// that the user lacks permission.
func journal(unit string) func(context.Context) ([]byte, error) {
	read := Program("journalctl", "--no-pager", "--quiet", "--output=short-iso", "--lines="+journalLines,
		"--since="+journalSince, "--unit="+unit)
	return func(ctx context.Context) ([]byte, error) {
		text, err := read(ctx)
		if err == nil && len(text) == 0 {
			err = errors.New(
				"no entries in the last day, or no permission to read them: run as root or in group systemd-journal",
			)
		}
		return text, err
	}
}

func units(names []string) func(context.Context) ([]byte, error) {
	const properties = "--property=Id,LoadState,ActiveState,SubState,Result,UnitFileState,NRestarts,MainPID," +
		"ExecMainStatus,ExecMainCode,ActiveEnterTimestamp,InactiveEnterTimestamp,MemoryCurrent,TasksCurrent,DropInPaths"
	return Program("systemctl", append([]string{"show", properties, "--"}, names...)...)
}

func kernel(h Host) func(context.Context) ([]byte, error) {
	var parts []Source
	for _, path := range []string{
		"/proc/version", "/proc/uptime", "/proc/loadavg", "/proc/meminfo", "/proc/pressure/cpu", "/proc/pressure/io",
		"/proc/pressure/memory", "/proc/diskstats", "/proc/mdstat", "/proc/net/dev", "/proc/sys/kernel/tainted",
		"/proc/sys/kernel/random/boot_id", "/sys/devices/system/clocksource/clocksource0/current_clocksource",
	} {
		parts = append(parts, Source{Name: path, Get: FromFile(path, false)})
	}
	return Join(append(parts, Source{Name: "df " + h.DataDir, Get: Program("df", "--", h.DataDir)})...)
}
