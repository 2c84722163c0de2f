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

// confirmation holds the flags of commands that remove, reboot or roll.
type confirmation struct {
	yes, dryRun bool
}

func (c *confirmation) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.yes, "yes", false, "do not ask for confirmation; required without a terminal")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "check the request and show what it would do; change nothing")
	cmd.MarkFlagsMutuallyExclusive("yes", "dry-run")
}

// confirm has an operator confirm a request. what names it, as in "remove n3". look has quorumd check the request
// without accepting it, and returns the document and the text of what would happen. confirm reports whether the request
// is to be sent: not with --dry-run, and not if the answer is no.
func (a *app) confirm(cmd *cobra.Command, c confirmation, what string,
	preview func() (doc any, text func(*page), err error),
) (bool, error) {
	in := cmd.InOrStdin()
	asks := isTerminal(in) && isTerminal(a.err)
	switch {
	case c.yes:
		return true, nil
	case !c.dryRun && !asks:
		return false, usage("add --yes; --dry-run shows what it would do",
			"cannot %s: not confirmed, and there is no terminal to ask", what)
	}
	doc, text, err := preview()
	if err != nil {
		return false, cannot(what, err)
	}
	if c.dryRun {
		return false, a.emit(doc, func(p *page) {
			text(p)
			p.line("nothing has changed")
		})
	}
	shown := &app{out: a.err, format: formatTable, colour: a.colour, columns: a.columns}
	if err := shown.emit(doc, text); err != nil {
		return false, err
	}
	if !askYesNo(in, a.err) {
		return false, &failure{code: exitFault, message: "cannot " + what + ": not confirmed; nothing has changed"}
	}
	return true, nil
}

// maxAnswer is the longest line that is read as an answer, in bytes.
const maxAnswer = 1024

// askYesNo asks, and reports whether the answer is yes.
func askYesNo(in io.Reader, out io.Writer) bool {
	fmt.Fprint(out, "continue? [y/N] ")
	line, err := bufio.NewReader(io.LimitReader(in, maxAnswer)).ReadString('\n')
	if err != nil {
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
