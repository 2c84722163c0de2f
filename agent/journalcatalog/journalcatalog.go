// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package journalcatalog assigns message IDs in the systemd journal to every reason and every health code. It writes
// the journal's message catalog, from which "journalctl --catalog" shows what a code means and what to do. The package
// promises:
//
//   - An ID follows from the code alone, and never changes: operators use it in filters and alerts.
//   - The texts are those of policy.Reasons and health.Problems, which the command line shows too.
package journalcatalog

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// namespace is the UUID namespace of quorumd's codes. It was drawn at random once.
const namespace = "ec7aeb2a-db9a-402c-bd8a-62c3f127f881"

// Entry describes a code, wherever it appears.
type Entry struct {
	Code    string
	State   string // of a finding: the health state that it alone leads to; empty for a reason
	Subject string // one sentence, without its full stop
	Text    string // its meaning, if that is more than the subject
	Remedy  string // what the operator does; empty if there is nothing to do
}

// ID returns the message ID of a code: a UUID of version 5, in 32 hexadecimal digits.
func ID(code string) string {
	id := uuid.NewSHA1(uuid.MustParse(namespace), []byte(code))
	return strings.ReplaceAll(id.String(), "-", "")
}

// Codes returns all codes in alphabetical order: every finding, and every reason.
func Codes() []Entry {
	var all []Entry
	for _, p := range health.Problems() {
		all = append(all, Entry{
			Code: string(p.Code), State: p.State.String(), Subject: strings.TrimSuffix(p.Title, "."), Text: p.Meaning,
			Remedy: p.Remedy,
		})
	}
	for _, r := range policy.Reasons() {
		all = append(all, Entry{Code: string(r.Code), Subject: r.Meaning, Remedy: r.Remedy})
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Code, b.Code) })
	return all
}

// Entries returns the content of the journal's catalog: all codes that need an operator.
func Entries() []Entry {
	return slices.DeleteFunc(Codes(), func(e Entry) bool { return e.Remedy == "" })
}

// Write writes the catalog file.
func Write(w io.Writer) error {
	for _, e := range Entries() {
		text := ""
		if e.Text != "" {
			text = wrap(e.Text) + "\n\n"
		}
		_, err := fmt.Fprintf(w,
			"-- %s\nSubject: %s: %s\nDefined-By: quorumd\nDocumentation: man:quorumd(8)\n\n%s%s\n\n",
			ID(e.Code), e.Code, e.Subject, text, wrap("What to do: "+e.Remedy))
		if err != nil {
			return err
		}
	}
	return nil
}

const width = 80 // of the catalog's text, which journalctl indents by three more

func wrap(text string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
