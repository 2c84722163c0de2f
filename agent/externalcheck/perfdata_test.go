// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package externalcheck

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestFiguresAreParsedAsThePluginGuidelinesDefine begins with real output of Debian's plugins.
func TestFiguresAreParsedAsThePluginGuidelinesDefine(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{
		"DISK OK - free space: / 53094MB (42% inode=95%);| /=70853MB;0;0;0;130628\n": "DISK OK - free space: / " +
			"53094MB (42% inode=95%); [{/ MB 70853}]",
		"LOAD OK - total load average: 2.35, 2.61|load1=2.350;5.000;10.000;0; load5=2.610;5.000;10.000;0;\n": "LOAD " +
			"OK - total load average: 2.35, 2.61 [{load1  2.35} {load5  2.61}]",
		"A|'free space'=12GB 'it''s'=3ms;1 rate=-15e1 u=U": "A [{free space GB 12} {it's ms 3} {rate  -150}]",
		"A|a=1 a=2 b=1c;;;; c=99%":                         "A [{a  1} {b c 1} {c % 99}]",
		"A\nlong text\nmore | b=1\nc=2s\n":                 "A [{b  1} {c s 2}]",
		"A|'open=1":                                        "A []",
		"A| = 1 =2 b=":                                     "A []",
		"":                                                 " []",
		"A|a=1.2.3 b=1x2 c=1e c=--1 d=1":                   "A [{c e 1} {d  1}]",
		"A|junk b=1":                                       "A [{b  1}]",
		"A|" + strings.Repeat("x", maxLabel+1) + "=1 b=\x1b[2J c=1":   "A [{c  1}]",
		"A|inf=inf nan=NaN big=1" + strings.Repeat("0", 400) + " a=1": "A [{a  1}]",
	} {
		text, figures := parse([]byte(out))
		if figures == nil {
			text += " []"
		} else {
			text += fmt.Sprintf(" %v", figures)
		}
		if text != want {
			t.Errorf("%q:\ngot  %s\nwant %s", out, text, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"OK - a|b=1;2;3", "A\nb|'c d'=1ms e=U\nf|g=2", "|=", "|''''=1", "\xff|\xff=1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		text, figures := parse(out)
		if utf8.RuneCountInString(text) > maxText || sanitize(text) != text || len(figures) > maxFigures {
			t.Errorf("%q, %d figures", text, len(figures))
		}
		seen := map[string]bool{}
		for _, g := range figures {
			if g.Label == "" || sanitize(g.Label) != g.Label || seen[g.Label] || math.IsNaN(g.Value) ||
				math.IsInf(g.Value, 0) || utf8.RuneCountInString(g.Unit) > maxUnit {
				t.Errorf("%+v", g)
			}
			seen[g.Label] = true
		}
	})
}
