// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/config"
)

// defaultConfig is where the package puts the configuration.
const defaultConfig = "/etc/quorumd/quorumd.yaml"

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		GroupID: groupService,
		Short:   "Check the configuration, or print the commented default",
		Args:    onlySubcommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(a.configCheckCommand(), a.configDefaultCommand())
	return cmd
}

func (a *app) configCheckCommand() *cobra.Command {
	var elsewhere bool
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report every mistake in a configuration file",
		Long: "Report every mistake in a configuration file, " + defaultConfig + " unless given, and in the\n" +
			"certificates it names. Exits with 78 if there is one. quorumd itself is not asked.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file := defaultConfig
			if len(args) > 0 {
				file = args[0]
			}
			c, err := config.Load(file)
			if err == nil && !elsewhere {
				err = c.CheckFiles()
			}
			if err != nil {
				return misconfigured(file, err)
			}
			doc := verdictOnConfig{file, orEmpty(c.Warnings)}
			return a.emit(doc, func(p *page) { writeConfigVerdict(p, doc) })
		},
	}
	cmd.Flags().BoolVar(&elsewhere, "elsewhere", false, "it is another host's file: do not look at the certificates it names")
	return cmd
}

// verdictOnConfig is the document of config check.
type verdictOnConfig struct {
	File     string   `json:"file"`
	Warnings []string `json:"warnings"`
}

func writeConfigVerdict(p *page, v verdictOnConfig) {
	p.line("%s: %s", v.File, word{"OK", good})
	for _, text := range v.Warnings {
		p.line("  %s %s", word{"warning:", warn}, text)
	}
}

// misconfigured is the failure of a file that cannot be read, or that has mistakes: one in a line.
func misconfigured(file string, err error) error {
	f := &failure{
		code: exitConfig, message: err.Error(),
		hint: "quorumctl config default shows every key with what it means",
	}
	if errors.Is(err, fs.ErrPermission) {
		f.code, f.hint = exitPermission, "run it as root, or as the user that runs quorumd"
	}
	if problems, ok := errors.AsType[config.Errors](err); ok {
		f.message = "cannot use " + file + ": " + count(len(problems), "mistake", "mistakes")
		f.details = strings.Split(err.Error(), "\n")
	} else if !strings.HasPrefix(f.message, "cannot ") {
		f.message = "cannot use " + file + ": " + f.message
	}
	return f
}

func (a *app) configDefaultCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "default",
		Short: "Print the commented default configuration",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if _, err := a.out.Write(config.Default()); err != nil {
				return cannot("write the output", err)
			}
			return nil
		},
	}
}

func orEmpty(list []string) []string {
	return append([]string{}, list...)
}
