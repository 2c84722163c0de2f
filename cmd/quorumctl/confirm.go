// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// confirmation holds the flags of commands that ask for confirmation.
type confirmation struct {
	yes, dryRun bool
}

func (c *confirmation) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.yes, "yes", false, "do not ask for confirmation; required without a terminal")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "check the request and show what it would do; change nothing")
	cmd.MarkFlagsMutuallyExclusive("yes", "dry-run")
}

// preview is what a request would do.
type preview struct {
	doc   any
	text  func(*page)
	empty bool // the request would change nothing
}

// confirm asks the operator to confirm a request, and reports whether to send it. With --yes, it returns true without
// asking. With --dry-run, or if the request would change nothing, it shows the preview and returns false. action names
// the request, such as "remove n3". look asks quorumd to check the request without accepting it.
func (a *app) confirm(cmd *cobra.Command, c confirmation, action string, look func() (preview, error)) (bool, error) {
	in := cmd.InOrStdin()
	asks := isTerminal(in) && isTerminal(a.err)
	switch {
	case c.yes:
		return true, nil
	case !c.dryRun && !asks:
		return false, usage("add --yes; --dry-run shows what would happen",
			"cannot %s: not confirmed, and there is no terminal to ask on", action)
	}
	would, err := look()
	switch {
	case err != nil:
		return false, cannot(action, err)
	case c.dryRun:
		return false, a.emit(would.doc, func(p *page) {
			would.text(p)
			p.line("nothing has changed")
		})
	case would.empty:
		return false, a.emit(would.doc, would.text)
	}
	shown := &app{out: a.err, format: formatTable, colour: a.colour, columns: a.columns}
	if err := shown.emit(would.doc, would.text); err != nil {
		return false, err
	}
	switch strings.ToLower(ask(in, a.err, "continue? [y/N] ")) {
	case "y", "yes":
		return true, nil
	}
	return false, &failure{code: exitFault, message: "cannot " + action + ": not confirmed; nothing has changed"}
}

// maxAnswer is the maximum length of an answer on a terminal, in bytes.
const maxAnswer = 1024

// ask asks a question on a terminal. It returns "" if there is no answer or the answer is too long.
func ask(in io.Reader, out io.Writer, question string) string {
	fmt.Fprint(out, question)
	line, err := bufio.NewReader(io.LimitReader(in, maxAnswer)).ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(line)
}
