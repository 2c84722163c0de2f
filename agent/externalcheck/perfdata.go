// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package externalcheck

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quorumd/quorumd/health"
)

const (
	maxText    = 200 // maximum characters of the line of text
	maxLabel   = 64  // characters
	maxFigures = 16  // per plugin
	maxUnit    = 8   // characters
)

// valueForm matches a number with its unit. The unit has no digits, so that it cannot match a part of the number.
var valueForm = regexp.MustCompile(`^([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)([^0-9]*)$`)

// parse parses the output of a plugin: a line of text and figures after a "|", then optionally more text and more
// figures after a second "|". It skips figures that it cannot parse, and those with the label of an earlier figure.
func parse(out []byte) (text string, figures []health.ExternalCheckFigure) {
	first, rest, _ := strings.Cut(string(out), "\n")
	line, data, _ := strings.Cut(first, "|")
	_, more, _ := strings.Cut(rest, "|")
	for left := data + " " + more; len(figures) < maxFigures; {
		label, behind, found := label(strings.TrimLeftFunc(left, unicode.IsSpace))
		if !found {
			break
		}
		var value string
		if end := strings.IndexFunc(behind, unicode.IsSpace); end < 0 {
			value, left = behind, ""
		} else {
			value, left = behind[:end], behind[end:]
		}
		if f, is := figure(label, value); is && !known(figures, f.Label) {
			figures = append(figures, f)
		}
	}
	return sanitize(line), figures
}

// label splits a text into the label at its beginning and the text after its "=". A quoted label can contain spaces;
// two quotes in the label stand for one.
func label(text string) (name, behind string, found bool) {
	if !strings.HasPrefix(text, "'") {
		name, behind, found = strings.Cut(text, "=")
		if cut := strings.LastIndexFunc(name, unicode.IsSpace); cut >= 0 {
			name = name[cut+1:] // skips text without a value
		}
		return name, behind, found
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] != '\'':
		case i+1 < len(text) && text[i+1] == '\'':
			i++
		default:
			behind, found = strings.CutPrefix(text[i+1:], "=")
			return strings.ReplaceAll(text[1:i], "''", "'"), behind, found
		}
	}
	return "", "", false
}

// figure parses a value with its unit, and ignores the plugin's thresholds that follow.
func figure(label, text string) (health.ExternalCheckFigure, bool) {
	parts := valueForm.FindStringSubmatch(strings.SplitN(text, ";", 2)[0])
	if parts == nil {
		return health.ExternalCheckFigure{}, false
	}
	value, err := strconv.ParseFloat(parts[1], 64)
	unit := parts[2]
	if err != nil || math.IsInf(value, 0) || label == "" || utf8.RuneCountInString(label) > maxLabel ||
		utf8.RuneCountInString(unit) > maxUnit || sanitize(label) != label || sanitize(unit) != unit {
		return health.ExternalCheckFigure{}, false
	}
	return health.ExternalCheckFigure{Label: label, Unit: unit, Value: value}, true
}

func known(figures []health.ExternalCheckFigure, label string) bool {
	return slices.ContainsFunc(figures, func(f health.ExternalCheckFigure) bool { return f.Label == label })
}

// sanitize makes a text safe for logs, terminals and metrics: one line of at most maxText printable characters.
func sanitize(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) || r == utf8.RuneError:
			return '?'
		}
		return r
	}, text))
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText-1]) + "…"
	}
	return text
}
