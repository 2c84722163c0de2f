// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "fmt"

// level is the evidence of a check that compares one figure with one limit.
type level struct {
	plain
	hysteresis

	limit  Limit
	of     func(Input) Figure
	words  func(float64, Limit) string
	figure Figure
}

func (l *level) read(in Input) {
	l.figure = l.of(in)
	known, value := l.figure.Known, l.figure.Value
	bad, well := known && l.limit.beyond(value, false), known && !l.limit.beyond(value, true)
	text := ""
	if known && !well {
		text = l.present()
	}
	l.record(in.Now, bad, well, text)
}

func (l *level) grade() float64 { return l.limit.grade(l.figure.Value) }

func (l *level) absent() string { return l.figure.absent() }

func (l *level) present() string { return l.words(l.figure.Value, l.limit) }

func (l *level) text() string { return l.currentText(l.present()) }

func (l *level) transitions() []rule {
	bad, well := "over", "at most"
	if l.limit.Below {
		bad, well = "below", "at least"
	}
	return l.rules(fmt.Sprintf("%s %s %s", l.limit.Of, bad, l.limit.value(l.limit.Enter)),
		fmt.Sprintf("%s %s %s", l.limit.Of, well, l.limit.value(l.limit.Leave)), l.present)
}
