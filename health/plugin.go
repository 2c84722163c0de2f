// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// ExternalCheck is a check of the operator's own: a program that says how things are as Nagios plugins do.
type ExternalCheck struct {
	Name  string // letters, digits, "-" and "_"
	Path  string // for people
	Gates Gate
	// Interval is the time between two runs.
	Interval time.Duration
}

// ExternalCheckReading is what a plugin has said last. The zero value means unknown.
type ExternalCheckReading struct {
	Name string
	// Runs counts those that told how things are: each counts once.
	Runs  uint64
	State State  // OK, or WARM for WARNING, or SLOW for CRITICAL
	Text  string // one line
	// Absent says why nothing is known now, without numbers that change.
	Absent  string
	Figures []ExternalCheckFigure
	Took    time.Duration
	Hung    bool // it was killed, and has not ended
}

// ExternalCheckFigure is one number that a plugin has measured.
type ExternalCheckFigure struct {
	Label, Unit string
	Value       float64
}

// pluginAgain is how many times in a row a plugin must say so before it is believed.
const pluginAgain = 2

// pluginCalm is how long a plugin must say OK, before patience doubles that.
const pluginCalm = time.Minute

// pluginSilence is how many intervals what a plugin has found outlives its word. Whether it will ever tell again nobody
// knows, and what it gates would be gated for ever.
const pluginSilence = 10

// ExternalCheckCode returns the code of what a plugin finds.
func ExternalCheckCode(name string) Code {
	return Code("PLUGIN_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
}

// ExternalCheckName returns the name of the check, which is none of quorumd's own.
func ExternalCheckName(name string) string { return "plugin " + name }

// declarePlugins declares the operator's own checks.
func declarePlugins(t Thresholds) (all []declaration) {
	for _, p := range t.Plugins {
		all = append(all, declarePlugin(p))
	}
	return all
}

func declarePlugin(p ExternalCheck) declaration {
	code := ExternalCheckCode(p.Name)
	const remedy = "run it by hand as the user quorumd; ask the owner of the check what it tests"
	problem := func(s State, said string) Problem {
		return Problem{
			code, Machine, s, "The external check " + p.Name + " reports " + said + ".",
			"It is a program configured on this host; the finding quotes its output.", remedy,
		}
	}
	return declaration{
		Check: Check{
			Name: ExternalCheckName(p.Name), Component: Machine, Gates: p.Gates, Source: "the program " + p.Path,
			Problems: []Problem{problem(Warm, "WARNING"), problem(Slow, "CRITICAL")},
			Runbook:  findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			return &plugin{name: p.Name, code: code, silence: pluginSilence * p.Interval, track: at}
		},
	}
}

// plugin is the evidence of one of the operator's own checks. It is believed when it says the same again.
type plugin struct {
	plain

	name    string
	code    Code
	silence time.Duration // after which it is no longer held to its word
	track   *track
	now     time.Duration
	heard   time.Duration // when it was last not silent
	seen    ExternalCheckReading
	said    []State // the newest results, each once
	begun   bool
	lastBad time.Duration
}

func (p *plugin) read(in Input) {
	p.now = in.Now
	if !p.begun {
		p.begun, p.lastBad, p.heard = true, p.now, p.now
	}
	p.hear(in)
	if p.why() == "" {
		p.heard = p.now
	}
}

// hear takes in what it has said since.
func (p *plugin) hear(in Input) {
	i := slices.IndexFunc(in.Plugins, func(r ExternalCheckReading) bool { return r.Name == p.name })
	if i < 0 {
		return
	}
	before := p.seen.Runs
	if p.seen = in.Plugins[i]; p.seen.Runs == before {
		return
	}
	p.said = append(p.said, p.seen.State)
	p.said = slices.Clone(p.said[max(0, len(p.said)-pluginAgain):])
	if p.seen.State != OK {
		p.lastBad = p.now
	}
}

// absent is empty when it has been silent for too long: what ends its finding is a rule.
func (p *plugin) absent() string {
	if p.forgotten() {
		return ""
	}
	return p.why()
}

// why returns why it is silent; empty when it is not.
func (p *plugin) why() string {
	if p.seen.Absent == "" && p.seen.Runs == 0 {
		return notYet
	}
	return p.seen.Absent
}

// forgotten reports whether it has been silent for too long to be held to its word.
func (p *plugin) forgotten() bool { return p.track.State != OK && p.now-p.heard >= p.silence }

// entered makes one whose word no longer counts say it again from the beginning.
func (p *plugin) entered(State) {
	if p.track.State == OK {
		p.said = nil
	}
}

func (p *plugin) text() string { return p.seen.Text }

// all reports whether every one of the newest results is as wanted.
func (p *plugin) all(wanted func(State) bool) bool {
	for _, s := range p.said {
		if !wanted(s) {
			return false
		}
	}
	return len(p.said) == pluginAgain
}

func (p *plugin) ways() []rule {
	says := func(wanted func(State) bool) func() (string, bool) {
		return func() (string, bool) { return p.text(), p.all(wanted) }
	}
	critical := func(s State) bool { return s == Slow }
	bad := func(s State) bool { return s != OK }
	warning := func(s State) bool { return s == Warm }
	return []rule{
		{
			[]State{Warm, Slow},
			OK, "", fmt.Sprintf("no result for %s, %d of its intervals", show(p.silence), pluginSilence),
			func() (string, bool) {
				return fmt.Sprintf("no result for %s: %s", show(p.silence), p.why()), p.forgotten()
			},
			false, // it has not recovered
		},
		{[]State{OK, Warm}, Slow, p.code, "it reports CRITICAL twice in a row", says(critical), false},
		{[]State{OK}, Warm, p.code, "it reports WARNING or CRITICAL twice in a row", says(bad), false},
		{[]State{Slow}, Warm, p.code, "it reports WARNING twice in a row", says(warning), false},
		{
			[]State{Warm, Slow},
			OK, "", "it reports OK twice in a row, and nothing else for " + show(pluginCalm),
			func() (string, bool) {
				return p.text(), p.all(func(s State) bool { return s == OK }) &&
					p.now-p.lastBad >= p.track.patience(OK, pluginCalm, p.now)
			},
			true,
		},
	}
}
