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

// The exit codes of qualify beside 0, and those of wrong flags.
const (
	exitUnfit     = 1 // the machine failed
	exitUndecided = 2 // it could not be told
)

// probeCommand makes the program the child that writes to the disk: no command for people.
const probeCommand = "probe-disk"

// childOfSelf starts this program as that child.
func childOfSelf() []string { return []string{"/proc/self/exe", probeCommand} }

func (a *app) qualifyCommand() *cobra.Command {
	o := qualify.Options{Child: childOfSelf()}
	cmd := &cobra.Command{
		Use:     "qualify [DIR]",
		GroupID: groupInspect,
		Short:   "Examine this machine before it carries etcd; needs neither etcd nor quorumd",
		Long: "Write to DIR as etcd writes its log, alone and under several writers at once, and hold the\n" +
			"time that it takes against etcd's guidance. Nothing stays in DIR, which is /var/lib/etcd unless\n" +
			"given. Exits with 0 when the machine passes, 1 when it fails, and 2 when that cannot be told.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir = "/var/lib/etcd"
			if len(args) > 0 {
				o.Dir = args[0]
			}
			o.Beside = cmd.Flags().Changed("writers")
			return a.qualify(cmd.Context(), o)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	flags := cmd.Flags()
	durationVar(flags, &o.For, "duration", 10*time.Second, "of each run")
	flags.StringArrayVar(&o.Peers, "peer", nil, "HOST:PORT of another member, to examine the network; more than once")
	flags.BoolVar(&o.Fio, "fio", false, "run fio too, as etcd's documentation has it, and compare")
	flags.IntSliceVar(&o.Writers, "writers", []int{1, 4, 16}, "how many write at once, run after run")
	return cmd
}

// qualify examines the machine and shows what came out.
func (a *app) qualify(ctx context.Context, o qualify.Options) (err error) {
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return cannot("find the directory", err)
	}
	if err := o.Check(); err != nil {
		return usage("quorumctl qualify --help", "cannot examine the machine: %v", err)
	}
	p := a.watchedOn(a.err)
	o.Said = func(s qualify.Stage) {
		text := "about " + display.Span(s.Left) + " left: " + s.Text
		_ = p.show(time.Now(), s.What, text, nil) // who does not see it misses nothing
	}
	r, err := qualify.Examine(ctx, o)
	_ = p.end()
	if err != nil {
		return unexamined(err)
	}
	if err := a.emit(r, func(p *page) { writeReport(p, r) }); err != nil {
		return err
	}
	switch r.Result {
	case qualify.Pass:
		return nil
	case qualify.Fail:
		return &failure{code: exitUnfit} // all is said
	default:
		return &failure{code: exitUndecided}
	}
}

// unexamined makes an error of an examination fit for people.
func unexamined(err error) error {
	f := &failure{code: exitUndecided, message: err.Error()}
	if e, ok := errors.AsType[*qualify.Error](err); ok {
		f.hint = e.Remedy
	}
	return f
}
