// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// ExternalCheck is one of the operator's own checks: a program that reports its result as Nagios plugins do.
type ExternalCheck struct {
	Name  string // letters, digits, "-" and "_"
	Path  string // for display
	Gates Gate
	// Interval is the time between two runs.
	Interval time.Duration
}

// ExternalCheckReading is the last result of an external check. The zero value means unknown.
type ExternalCheckReading struct {
	Name string
	// Runs counts the runs with a result, so that each result is used only once.
	Runs  uint64
	State State  // OK, WARM for the result WARNING, SLOW for CRITICAL
	Text  string // one line
	// Absent is why there is no current result, as a stable text.
	Absent  string
	Figures []ExternalCheckFigure
	Took    time.Duration
	Hung    bool // the program was killed but has not exited
}

// ExternalCheckFigure is one number measured by an external check.
type ExternalCheckFigure struct {
	Label string  `json:"label"`
	Unit  string  `json:"unit,omitempty"`
	Value float64 `json:"value"`
}

// externalCheckAgain is how many times in a row a result must occur before it counts.
const externalCheckAgain = 2

// externalCheckCalm is how long an external check must report OK before its finding clears. Each recovery doubles that
// time: see patience.
const externalCheckCalm = time.Minute

// externalCheckSilence is the number of intervals without a result after which a finding ends. Otherwise the finding of
// a check that never reports again would prevent steps forever.
const externalCheckSilence = 10

// ExternalCheckCode returns the code of an external check's finding.
func ExternalCheckCode(name string) Code {
	return Code("CHECK_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
}

// ExternalCheckName returns the name of the declared check. It differs from the names of quorumd's own checks.
func ExternalCheckName(name string) string { return "external " + name }

// declareExternalChecks declares the operator's own checks.
func declareExternalChecks(t Thresholds) (all []declaration) {
	for _, p := range t.ExternalChecks {
		all = append(all, declareExternalCheck(p))
	}
	return all
}

func declareExternalCheck(p ExternalCheck) declaration {
	code := ExternalCheckCode(p.Name)
	const remedy = "run the program by hand as the user quorumd; ask the owner of the check what it tests"
	problem := func(s State, result string) Problem {
		return Problem{
			code, Machine, s, "The external check " + p.Name + " reports " + result + ".",
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
			return &externalCheck{name: p.Name, code: code, silence: externalCheckSilence * p.Interval, track: at}
		},
	}
}

// externalCheck is the evidence of one of the operator's own checks. A single result changes nothing: see
// externalCheckAgain.
type externalCheck struct {
	plain

	name       string
	code       Code
	silence    time.Duration // how long a finding lasts without a new result
	track      *track
	now        time.Duration
	lastResult time.Duration // when there was last a current result, or when the check was first read
	seen       ExternalCheckReading
	results    []State // the newest results, one per run
	begun      bool
	lastBad    time.Duration
}

func (p *externalCheck) read(in Input) {
	p.now = in.Now
	if !p.begun {
		p.begun, p.lastBad, p.lastResult = true, p.now, p.now
	}
	p.take(in)
	if p.why() == "" {
		p.lastResult = p.now
	}
}

// take records a new result.
func (p *externalCheck) take(in Input) {
	i := slices.IndexFunc(in.ExternalChecks, func(r ExternalCheckReading) bool { return r.Name == p.name })
	if i < 0 {
		return
	}
	before := p.seen.Runs
	if p.seen = in.ExternalChecks[i]; p.seen.Runs == before {
		return
	}
	p.results = append(p.results, p.seen.State)
	p.results = slices.Clone(p.results[max(0, len(p.results)-externalCheckAgain):])
	if p.seen.State != OK {
		p.lastBad = p.now
	}
}

// absent returns why there is no current result. If there has been none for too long, it returns "", so that a rule can
// end the finding.
func (p *externalCheck) absent() string {
	if p.forgotten() {
		return ""
	}
	return p.why()
}

// why returns why there is no current result; empty if there is one.
func (p *externalCheck) why() string {
	if p.seen.Absent == "" && p.seen.Runs == 0 {
		return notYet
	}
	return p.seen.Absent
}

// forgotten reports whether there has been no result for so long that the finding must end.
func (p *externalCheck) forgotten() bool {
	return p.track.State != OK && p.now-p.lastResult >= p.silence
}

// entered discards the results when a finding ends, so that a new finding needs two results again.
func (p *externalCheck) entered(State) {
	if p.track.State == OK {
		p.results = nil
	}
}

func (p *externalCheck) text() string { return p.seen.Text }

// all reports whether there are enough results, and wanted returns true for each of them.
func (p *externalCheck) all(wanted func(State) bool) bool {
	for _, s := range p.results {
		if !wanted(s) {
			return false
		}
	}
	return len(p.results) == externalCheckAgain
}

func (p *externalCheck) transitions() []rule {
	newest := func(wanted func(State) bool) func() (string, bool) {
		return func() (string, bool) { return p.text(), p.all(wanted) }
	}
	critical := func(s State) bool { return s == Slow }
	bad := func(s State) bool { return s != OK }
	warning := func(s State) bool { return s == Warm }
	return []rule{
		{
			[]State{Warm, Slow},
			OK, "",
			fmt.Sprintf("no result for %s, which is %d intervals of the check", show(p.silence), externalCheckSilence),
			func() (string, bool) {
				return fmt.Sprintf("no result for %s: %s", show(p.silence), p.why()), p.forgotten()
			},
			false, // a finding that ends without a result has not recovered
		},
		{[]State{OK, Warm}, Slow, p.code, "it reports CRITICAL twice in a row", newest(critical), false},
		{[]State{OK}, Warm, p.code, "it reports WARNING or CRITICAL twice in a row", newest(bad), false},
		{[]State{Slow}, Warm, p.code, "it reports WARNING twice in a row", newest(warning), false},
		{
			[]State{Warm, Slow},
			OK, "", "it reports OK twice in a row, and nothing else for " + show(externalCheckCalm),
			func() (string, bool) {
				return p.text(), p.all(func(s State) bool { return s == OK }) &&
					p.now-p.lastBad >= p.track.patience(OK, externalCheckCalm, p.now)
			},
			true,
		},
	}
}
