// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/config"
)

// reflowHelp wraps the help of a command and its subcommands at the maximum line width. It keeps indented lines, which
// are lists.
func reflowHelp(cmd *cobra.Command) {
	var lines []string
	var paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			lines = append(lines, wrap(strings.Join(paragraph, " "), columns)...)
			paragraph = nil
		}
	}
	for line := range strings.Lines(cmd.Long) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, " ") {
			flush()
			lines = append(lines, line)
			continue
		}
		paragraph = append(paragraph, line)
	}
	flush()
	cmd.Long = strings.Join(lines, "\n")
	for _, sub := range cmd.Commands() {
		reflowHelp(sub)
	}
}

// joinWait writes "--wait 10m" as "--wait=10m". The value of --wait is optional, so pflag accepts only the second form.
// Arguments after "--" belong to another command.
func joinWait(args []string) []string {
	var joined []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(joined, args[i:]...)
		}
		if args[i] == "--wait" && i+1 < len(args) {
			if _, err := config.ParseDuration(args[i+1]); err == nil {
				joined = append(joined, "--wait="+args[i+1])
				i++
				continue
			}
		}
		joined = append(joined, args[i])
	}
	return joined
}
