// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/quorumd/quorumd/agent/config"
)

// durationFlag is a duration on the command line, which may have days, as in the configuration.
type durationFlag time.Duration

// durationVar declares a flag for a duration.
func durationVar(flags *pflag.FlagSet, to *time.Duration, name string, value time.Duration, help string) {
	*to = value
	flags.Var((*durationFlag)(to), name, help)
}

func (d *durationFlag) Set(text string) error {
	value, err := config.ParseDuration(text)
	*d = durationFlag(value)
	return err
}

// String gives 0 for none, which the help does not show as a default.
func (d *durationFlag) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

func (*durationFlag) Type() string { return "duration" }
