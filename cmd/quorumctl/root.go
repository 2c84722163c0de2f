// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
)

// app is the state that all commands share.
type app struct {
	out    io.Writer
	err    io.Writer
	socket string
	format format
	colour colour

	columns   int  // width of a line of text; 0 for the default
	piped     bool // the output is not a terminal, so a program may read the tables
	noHeaders bool // tables have no header
	quiet     bool // only errors are written

	printed []printed // the JSON documents that the commands write
}

func newApp(stdout, stderr io.Writer) *app {
	return &app{
		out: stdout, err: stderr, format: formatTable, colour: colourAuto, piped: !isTerminal(stdout),
	}
}

// run runs one command line and returns the exit code. Cancelling the context ends it early.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return newApp(stdout, stderr).run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	stdout, stderr := a.out, a.err
	root := a.rootCommand()
	root.SetArgs(joinWait(args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	rejectUnknownShells(root)
	cmd, err := root.ExecuteContextC(ctx)
	return report(stderr, cmd, err)
}

// socketVariable is the environment variable that replaces the default of --socket.
const socketVariable = "QUORUMCTL_SOCKET"

// The groups of the help.
const (
	groupInspect = "inspect"
	groupOperate = "operate"
	groupService = "service"
)

func (a *app) rootCommand() *cobra.Command {
	a.printed = nil
	root := parent(&cobra.Command{
		Use:   "quorumctl",
		Short: "Inspect and operate quorumd on this host",
		Long: "quorumctl shows the cluster as quorumd on this host sees it, and sends requests to quorumd\n" +
			"over its control socket. It works while etcd is down.",
		Example: examples("quorumctl status", "quorumctl explain",
			"quorumctl maintenance on --reason 'new disk' --for 1h"),
		Version:       ownVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			if a.quiet {
				a.out, a.err = io.Discard, io.Discard
			}
		},
	})
	root.AddGroup(
		&cobra.Group{ID: groupInspect, Title: "Inspect:"},
		&cobra.Group{ID: groupOperate, Title: "Operate:"},
		&cobra.Group{ID: groupService, Title: "Service:"},
	)
	root.SetHelpCommandGroupID(groupService)
	root.SetCompletionCommandGroupID(groupService)
	flags := root.PersistentFlags()
	flags.StringVar(&a.socket, "socket", control.DefaultSocket, "control socket (or "+socketVariable+")")
	a.socket = cmp.Or(os.Getenv(socketVariable), a.socket)
	flags.VarP(&a.format, "output", "o", "table, wide, json or yaml")
	flags.Var(&a.colour, "color", "auto, always or never; auto respects NO_COLOR")
	flags.BoolVar(&a.noHeaders, "no-headers", false, "omit the header line of tables")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "write errors only; the exit status is the result")
	complete(root, "output", formats())
	complete(root, "color", colours())
	root.AddCommand(
		a.statusCommand(), a.healthCommand(), a.networkCommand(), a.explainCommand(), a.historyCommand(),
		a.supportBundleCommand(),
		a.codesCommand(),
		a.checkCommand(), a.qualifyCommand(),
		a.bootstrapCommand(), a.pauseCommand(), a.resumeCommand(), a.operationCommand(),
		a.maintenanceCommand(), a.cycleCommand(), a.rolloutCommand(), a.readdressCommand(), a.defragCommand(),
		a.upgradeCommand(),
		a.memberCommand(), a.clusterCommand(),
		a.retireCommand(), a.leaderCommand(), a.snapshotCommand(),
		a.recoverCommand(),
		a.waitCommand(), a.configCommand(), a.initCommand(), a.pkiCommand(), a.schemaCommand(), a.versionCommand(),
	)
	completeDurations(root)
	reflowHelp(root)
	return root
}

// rejectUnknownShells makes an unknown shell an error. cobra alone would print its help and exit 0. Call it after the
// output is set.
func rejectUnknownShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			parent(cmd)
		}
	}
}

// parent adds subcommands to cmd and returns it. Without a subcommand, cmd prints its help; for a misspelt subcommand,
// it suggests the nearest name.
func parent(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.SuggestionsMinimumDistance = onlySubcommands, 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subs...)
	return cmd
}

// argument returns the first argument, or a default.
func argument(args []string, otherwise string) string {
	if len(args) > 0 {
		return args[0]
	}
	return otherwise
}

// examples formats command lines for the help of a command.
func examples(lines ...string) string { return "  " + strings.Join(lines, "\n  ") }

// complete lets the shell complete the values of a flag.
func complete(cmd *cobra.Command, flag string, values []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag does not exist, which is a bug
	}
}

func (a *app) client() *control.Client { return control.Dial(a.socket) }

// status reads the status. action names the action in the error.
func (a *app) status(ctx context.Context, action string) (control.Status, error) {
	s, err := a.client().Status(ctx)
	if err != nil {
		return s, cannot(action, err)
	}
	return s, nil
}

// showStatus reads the status and shows a part of it. action names the action in the error.
func showStatus[D any](ctx context.Context, a *app, action string, document func(control.Status) D,
	text func(*page, control.Status),
) error {
	s, err := a.status(ctx, action)
	if err != nil {
		return err
	}
	return a.emit(document(s), func(p *page) { text(p, s) })
}

// reasonFlag declares the required flag --reason. recorded is the part of its help that describes where the reason
// appears.
func reasonFlag(cmd *cobra.Command, to *string, recorded string) {
	cmd.Flags().StringVar(to, "reason", "", "why, in one line ("+recorded+")")
	if err := cmd.MarkFlagRequired("reason"); err != nil {
		panic(err) // the flag does not exist, which is a bug
	}
}

// inHistory describes where the reasons of most commands appear, for reasonFlag.
const inHistory = "shown, and recorded in the history"

// coloured reports whether the output has colours.
func (a *app) coloured() bool {
	switch a.colour {
	case colourAlways:
		return true
	case colourNever:
		return false
	}
	return os.Getenv("NO_COLOR") == "" && supportsANSI(a.out)
}
