// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/cmd/quorumctl/qualify"
)

// The exit codes that only qualify returns.
const (
	exitUnfit     = 1 // the machine fails the benchmark
	exitUndecided = 2 // the result is inconclusive, or the measurement failed
)

// probeCommand is the hidden command of the child that writes to the disk.
const probeCommand = "probe-disk"

// childOfSelf returns the command that starts this program as the child that writes to the disk.
func childOfSelf() []string { return []string{"/proc/self/exe", probeCommand} }

func (a *app) qualifyCommand() *cobra.Command {
	o := qualify.Options{Child: childOfSelf()}
	cmd := a.prints(&cobra.Command{
		Use:     "qualify [DIR]",
		GroupID: groupInspect,
		Short:   "Benchmark this machine for etcd, before installing it",
		Long: "Write to DIR (default /var/lib/etcd) as etcd writes its log, with one writer and with several, and\n" +
			"compare the latency with etcd's guidance. The written files are removed afterwards. Neither etcd nor\n" +
			"quorumd is needed. Exits 0 if the machine passes, 1 if it fails, and 2 if the result is inconclusive.",
		Example: examples("quorumctl qualify", "quorumctl qualify /tmp --duration 30s",
			"quorumctl qualify --peer 10.0.0.2:2380 --peer 10.0.0.3:2380 --fio"),
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir = argument(args, "/var/lib/etcd")
			o.NextToEtcd = cmd.Flags().Changed("writers")
			return a.qualify(cmd.Context(), o)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}, printed{name: "qualification", of: qualify.Report{}})
	flags := cmd.Flags()
	durationVar(flags, &o.For, "duration", 10*time.Second, "duration of each run")
	flags.StringArrayVar(&o.Peers, "peer", nil, "HOST:PORT of another member, to test the network; repeatable")
	flags.BoolVar(&o.Fio, "fio", false, "also run fio as in etcd's documentation, and compare")
	flags.IntSliceVar(&o.Writers, "writers", []int{1, 4, 16}, "numbers of concurrent writers, with one run for each")
	return cmd
}

// qualify measures the machine and shows the result.
func (a *app) qualify(ctx context.Context, o qualify.Options) (err error) {
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return cannot("find the directory", err)
	}
	if err := o.Check(); err != nil {
		return usage("quorumctl qualify --help", "cannot benchmark the machine: %v", err)
	}
	p := a.terminalProgress(a.err)
	o.Said = func(s qualify.Stage) {
		text := "about " + display.Span(s.Left) + " left: " + s.Text
		_ = p.show(time.Now(), s.What, text, nil) // a failure to show progress does not end the benchmark
	}
	r, err := qualify.Examine(ctx, o)
	_ = p.end()
	if err != nil {
		return qualifyFailure(err)
	}
	if err := a.emit(r, func(p *page) { writeReport(p, r) }); err != nil {
		return err
	}
	switch r.Result {
	case qualify.Pass:
		return nil
	case qualify.Fail:
		return &failure{code: exitUnfit} // the printed report already shows the cause
	default:
		return &failure{code: exitUndecided}
	}
}

// qualifyFailure turns an error of package qualify into a failure.
func qualifyFailure(err error) error {
	f := &failure{code: exitUndecided, message: err.Error()}
	if e, ok := errors.AsType[*qualify.Error](err); ok {
		f.hint = e.Remedy
	}
	return f
}
