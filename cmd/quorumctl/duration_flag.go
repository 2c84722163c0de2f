// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorumd/quorumd/agent/config"
)

// durationFlag is a duration flag that accepts days, as the configuration does.
type durationFlag time.Duration

func durationVar(flags *pflag.FlagSet, to *time.Duration, name string, value time.Duration, help string) {
	*to = value
	flags.Var((*durationFlag)(to), name, help)
}

func (d *durationFlag) Set(text string) error {
	value, err := config.ParseDuration(text)
	*d = durationFlag(value)
	return err
}

// String returns "0" instead of "0s", so that the help shows no default.
func (d *durationFlag) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

func (*durationFlag) Type() string { return "duration" }

// completeDurations lets the shell complete units after a number, for every duration flag of a command and its
// subcommands.
func completeDurations(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, is := f.Value.(*durationFlag); !is {
			return
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, units); err != nil {
			panic(err) // the completion is registered twice, which is a bug
		}
	})
	for _, sub := range cmd.Commands() {
		completeDurations(sub)
	}
}

func units(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if toComplete == "" || !strings.Contains("0123456789", toComplete[len(toComplete)-1:]) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{
		cobra.CompletionWithDesc(toComplete+"s", "seconds"), cobra.CompletionWithDesc(toComplete+"m", "minutes"),
		cobra.CompletionWithDesc(toComplete+"h", "hours"), cobra.CompletionWithDesc(toComplete+"d", "days"),
	}, cobra.ShellCompDirectiveNoFileComp
}
