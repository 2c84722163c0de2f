// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package journalcatalog assigns a message ID in the systemd journal to every reason and every health code. It writes
// the journal's message catalog, from which "journalctl --catalog" shows the meaning and the remedy of a code. The
// package promises:
//
//   - An ID depends only on the code, and never changes: operators use it in filters and alerts.
//   - The texts come from policy.Reasons and health.Problems, as they do on the command line.
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

// namespace is the UUID namespace of quorumd's codes, a random UUID. It must never change.
const namespace = "ec7aeb2a-db9a-402c-bd8a-62c3f127f881"

// Entry describes a code.
type Entry struct {
	Code    string
	State   string // the health state that a finding alone leads to; empty for a reason
	Subject string // one sentence, without its full stop
	Text    string // the meaning, if the subject is not enough
	Remedy  string // the operator's action; empty if none is needed
}

// ID returns the message ID of a code: a UUID of version 5, in 32 hexadecimal digits.
func ID(code string) string {
	id := uuid.NewSHA1(uuid.MustParse(namespace), []byte(code))
	return strings.ReplaceAll(id.String(), "-", "")
}

// Codes returns all findings and reasons, sorted by code.
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

// Entries returns the content of the journal's catalog: all codes that require an operator's action.
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

const width = 80 // width of the catalog's text in columns; journalctl indents it by three

// wrap breaks a text into lines of at most width columns.
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
