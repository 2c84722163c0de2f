// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

// The exit codes, after sysexits.h.
const (
	exitOK          = 0
	exitUsage       = 64 // EX_USAGE: wrong flag or argument
	exitUnavailable = 69 // EX_UNAVAILABLE: quorumd cannot be reached or is busy, or etcd does not answer quorumd
	exitFault       = 70 // EX_SOFTWARE: any other error
	exitTimeout     = 75 // EX_TEMPFAIL: timed out
	exitPermission  = 77 // EX_NOPERM: not permitted
	exitConfig      = 78 // EX_CONFIG: the configuration file is wrong
)

// failure is an error with its exit code and remedy.
type failure struct {
	code    int
	message string // "cannot …: cause"; empty if stdout shows the cause
	hint    string // the remedy

	details []string // lines between message and hint
}

func (f *failure) Error() string { return f.message }

// usage returns the failure for a wrong command line.
func usage(hint, format string, args ...any) error {
	return &failure{code: exitUsage, message: fmt.Sprintf(format, args...), hint: hint}
}

// cannot turns an error of the daemon or of the client into a failure, unless it is one already. action names the
// action, such as "read the history".
func cannot(action string, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := &failure{code: exitFault, message: err.Error()}
	if e, ok := errors.AsType[*control.Error](err); ok {
		f.code, f.message, f.hint = exitCode(e), e.Message, e.Hint
	}
	if !strings.HasPrefix(f.message, "cannot ") {
		f.message = "cannot " + action + ": " + f.message
	}
	return f
}

func exitCode(e *control.Error) int {
	switch e.Code {
	case control.CodeUnreachable, control.CodeTimeout, control.CodeBusy:
		return exitUnavailable
	case control.CodeNotPermitted:
		return exitPermission
	case control.CodeBadRequest, control.CodeTooLarge:
		return exitUsage
	}
	switch e.Status { // any other code
	case 400:
		return exitUsage
	case 403:
		return exitPermission
	case 502, 503, 504:
		return exitUnavailable
	}
	return exitFault
}

// report prints an error and returns its exit code.
func report(stderr io.Writer, cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = commandLineFailure(cmd, err)
	}
	if f.message == "" {
		return f.code
	}
	lines := append([]string{"quorumctl: " + f.message}, f.details...)
	if f.hint != "" {
		lines = append(lines, "→ "+f.hint)
	}
	for _, line := range lines { // the lines are not wrapped, because operators copy commands from them
		fmt.Fprintln(stderr, display.Clean(line))
	}
	return f.code
}

// commandLineFailure rewords an error of cobra. It names a missing argument as the help does, and omits the parser's
// own text for an invalid value.
func commandLineFailure(cmd *cobra.Command, err error) *failure {
	text, hint := err.Error(), cmd.CommandPath()+" --help"
	if flags, is := strings.CutPrefix(text, "required flag(s) "); is {
		flag, _, _ := strings.Cut(flags, " ")
		text, hint = "--"+strings.Trim(flag, `",`)+" is missing", usageLine(cmd)
	} else if strings.Contains(text, " arg(s), ") {
		text, hint = argumentProblem(cmd), usageLine(cmd)
	} else if value, _, is := strings.Cut(text, ": strconv.ParseBool: "); is {
		text = value + ": neither true nor false"
	} else if value, _, is := strings.Cut(text, ": strconv."); is {
		text = value + ": not an integer"
	} else if value, _, is := strings.Cut(text, ": time: "); is {
		text = value + ": not a duration such as 30s, 10m or 4h"
	}
	return &failure{code: exitUsage, message: "cannot read the command line: " + text, hint: hint}
}

func usageLine(cmd *cobra.Command) string { return cmd.Parent().CommandPath() + " " + cmd.Use }

// argumentProblem names the missing argument or the first unexpected one.
func argumentProblem(cmd *cobra.Command) string {
	var names []string
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(word, "-") {
			break
		}
		names = append(names, strings.TrimSuffix(strings.Trim(word, "[]"), "..."))
	}
	if given := cmd.Flags().Args(); len(given) > len(names) {
		return fmt.Sprintf("unexpected argument %q", given[len(names)])
	} else if len(given) < len(names) {
		return names[len(given)] + " is missing"
	}
	return "an argument is missing"
}

// onlySubcommands accepts no arguments, and suggests a subcommand for a misspelt one.
func onlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := cmd.CommandPath() + " --help"
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		hint = "did you mean: " + cmd.CommandPath() + " " + cmp.Or(config.Nearest(args[0], names), names[0])
	}
	return usage(hint, "cannot read the command line: unknown command %q", args[0])
}
