// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/quorumd/quorumd/agent/display"
)

// table is aligned text. Empty columns are omitted.
type table struct {
	head []string
	rows [][]word
}

func (t *table) add(cells ...word) { t.rows = append(t.rows, cells) }

func cells(texts ...string) []word {
	row := make([]word, len(texts))
	for i, text := range texts {
		row[i].Text = text
	}
	return row
}

// table writes a table. Unless the output is wide or not a terminal, the widest columns are cut until a row fits into a
// line, and the last column is wrapped.
func (p *page) table(t table) {
	t = t.withoutEmpty()
	if len(t.rows) == 0 || len(t.head) == 0 {
		return
	}
	rows := t.rows
	if !p.noHeaders {
		rows = append([][]word{cells(t.head...)}, t.rows...)
	}
	last := len(t.head) - 1
	widths := p.widths(rows, last)
	used := 0
	for _, w := range widths {
		used += w + len(columnGap)
	}
	for _, row := range rows {
		var b strings.Builder
		for i, w := range widths {
			text := cut(display.Clean(row[i].Text), w)
			b.WriteString(p.paint(text, row[i].Tone))
			b.WriteString(strings.Repeat(" ", w-width(text)) + columnGap)
		}
		for i, part := range p.lastCell(display.Clean(row[last].Text), p.columns()-used) {
			if i > 0 {
				b.Reset()
				b.WriteString(strings.Repeat(" ", used))
			}
			p.raw(b.String() + p.paint(part, row[last].Tone))
		}
	}
}

const (
	columnGap  = "  "
	lastColumn = 24 // maximum width reserved for the last column
	narrowest  = 4  // minimum width of a column
)

// widths returns the widths of the first n columns.
func (p *page) widths(rows [][]word, n int) []int {
	widths := make([]int, n)
	needed := 0
	for _, row := range rows {
		needed = max(needed, width(display.Clean(row[n].Text)))
	}
	room := p.columns() - min(needed, lastColumn)
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], width(display.Clean(row[i].Text)))
		}
		room -= widths[i] + len(columnGap)
	}
	for ; room < 0 && p.bounded(); room++ {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] == narrowest {
			break // no column can shrink further, so the rows stay too wide
		}
		widths[widest]--
	}
	return widths
}

func cut(text string, most int) string {
	if width(text) <= most {
		return text
	}
	return text[:fits(text, most-1)] + "…"
}

// bounded reports whether tables must fit into the width of a line.
func (p *page) bounded() bool { return !p.piped && !p.wide }

// lastCell returns the lines of a cell of the last column.
func (p *page) lastCell(text string, most int) []string {
	if !p.bounded() {
		return []string{text}
	}
	return p.fold(text, most)
}

// fold wraps a text, except with -o wide.
func (p *page) fold(text string, most int) []string {
	if p.wide {
		return []string{text}
	}
	return wrap(text, max(most, narrowest))
}

func (t table) withoutEmpty() table {
	var kept table
	kept.rows = make([][]word, len(t.rows))
	for i, head := range t.head {
		empty := true
		for _, row := range t.rows {
			empty = empty && row[i].Text == ""
		}
		if empty {
			continue
		}
		kept.head = append(kept.head, head)
		for r, row := range t.rows {
			kept.rows[r] = append(kept.rows[r], row[i])
		}
	}
	return kept
}
