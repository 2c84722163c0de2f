// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	heatHigh     Code = "TEMPERATURE_HIGH"
	heatTooHigh  Code = "TEMPERATURE_CRITICAL"
	fanSlow      Code = "FAN_SLOW"
	heatRunbook       = "Heat"
	noSensorText      = "there is no sensor"
)

// heat is a check for tests: a sensor that may be missing.
type heat struct {
	plain

	code, worse Code
	celsius     int
	missing     string
	rounds      int // what the check remembers
	recalled    int
}

func (h *heat) transitions() []rule {
	over := func(limit int) func() (string, bool) {
		return func() (string, bool) { return h.text(), h.celsius > limit }
	}
	cool := func() (string, bool) { return h.text(), h.celsius <= 80 }
	ways := []rule{
		{[]State{OK}, Warm, h.code, "over 80 °C", over(80), false},
		{[]State{Warm, Slow}, OK, "", "80 °C or less", cool, true},
	}
	if h.worse != "" {
		ways = append([]rule{{[]State{OK, Warm}, Slow, h.worse, "over 95 °C", over(95), false}}, ways...)
	}
	return ways
}

func (h *heat) read(Input)     { h.rounds++ }
func (h *heat) absent() string { return h.missing }
func (h *heat) text() string   { return fmt.Sprintf("%d °C, limit 80 °C", h.celsius) }
func (h *heat) memory() any    { return h.rounds }

func (h *heat) recall(memory []byte, _, _ time.Duration) error {
	return json.Unmarshal(memory, &h.recalled)
}

// declared declares heat under the given name.
func (h *heat) declared(name string, gates Gate, behind ...string) declaration {
	d := declaration{
		Check: Check{
			Name: name, Component: Machine, Source: "a sensor", Gates: gates, Behind: behind, Runbook: heatRunbook,
			Problems: []Problem{{Code: h.code, Component: Machine, State: Warm, Remedy: "cool it"}},
		},
		start: OK, gather: func(*track) evidence { return h },
	}
	if h.worse != "" {
		d.Problems = append(d.Problems, Problem{Code: h.worse, Component: Machine, State: Slow, Remedy: "stop it"})
	}
	return d
}

// defaultDeclarations returns the checks of a judge with the default thresholds.
func defaultDeclarations() []declaration {
	return declarations(DefaultThresholds(), newComparison(DefaultThresholds()))
}

// withChecks returns a bench of a healthy member whose judge has these checks in addition to its own.
func withChecks(t *testing.T, more ...declaration) *bench {
	t.Helper()
	b := newBench(t, DefaultThresholds())
	var err error
	if b.j, err = judgeBy(append(defaultDeclarations(), more...)); err != nil {
		t.Fatal(err)
	}
	b.j.UseHistory(silentHistory())
	b.member = true
	b.each(400*time.Second, ms)
	if b.result.State != OK || len(b.result.Findings) > 0 {
		t.Fatalf("before: %+v", b.result)
	}
	b.changes = nil
	return b
}

func (b *bench) finds(codes ...Code) {
	b.t.Helper()
	var got []Code
	for _, f := range b.result.Findings {
		got = append(got, f.Code)
	}
	if fmt.Sprint(got) != fmt.Sprint(codes) {
		b.t.Errorf("found %v, want %v", got, codes)
	}
}

func TestNewCheckNeedsNoChangeToTheJudge(t *testing.T) {
	t.Parallel()
	h := &heat{code: heatHigh}
	b := withChecks(t, h.declared("heat", Everything))
	h.celsius = 81
	if changes := b.look(); len(changes) != 1 || changes[0].To != Warm || changes[0].Text != "81 °C, limit 80 °C" {
		t.Fatalf("heat: %+v", changes)
	}
	b.finds(heatHigh)
	v := b.result
	if v.State != Warm || v.Code != heatHigh || v.Text != "81 °C, limit 80 °C" || v.Remedy != "cool it" ||
		v.Since != b.now {
		t.Errorf("heat: %+v", v)
	}
}

func TestACheckThatGatesNothingOnlyAdvises(t *testing.T) {
	t.Parallel()
	h := &heat{code: heatHigh, worse: heatTooHigh}
	b := withChecks(t, h.declared("heat", Nothing))
	before := b.result
	h.celsius = 96
	b.look()
	b.finds(heatTooHigh)
	v := b.result
	if v.State != OK || v.Code != "" || v.Remedy != "" || v.Text != before.Text || v.Since != before.Since {
		t.Errorf("advice changed the health: %+v", v)
	}
	b.next.Free = 1 // WARM, but listed before the advice, which is SLOW
	b.look()
	b.finds(DiskSpaceLow, heatTooHigh)
	if b.result.State != Warm || b.result.Code != DiskSpaceLow {
		t.Errorf("got %+v", b.result)
	}
}

func TestTheHealthGatesWhatAnyFindingGates(t *testing.T) {
	t.Parallel()
	h := &heat{code: heatHigh}
	b := withChecks(t, h.declared("heat", Leadership))
	if v := b.result; v.State != OK || v.Gates != Nothing {
		t.Errorf("a healthy machine gates %v: %+v", v.Gates.Names(), v)
	}
	h.celsius = 90
	b.look()
	if v := b.result; v.State != Warm || v.Gates != Leadership {
		t.Errorf("heat alone gates %v: %+v", v.Gates.Names(), v)
	}
	b.next.Free = 1
	b.look()
	if v := b.result; v.Gates != Everything {
		t.Errorf("with little space it gates %v: %+v", v.Gates.Names(), v)
	}
}

func TestGatesAreParsedByName(t *testing.T) {
	t.Parallel()
	for g := range Everything + 1 {
		if got := ParseGates(g.Names()); got != g {
			t.Errorf("%v is read as %v", g.Names(), got.Names())
		}
	}
	if got := ParseGates([]string{"parking", "maintenance"}); got != Maintenance {
		t.Errorf("an unknown gate is read as %v", got.Names())
	}
}

func TestAnOptionalCheckWithoutAReadingIsReportedOnceAndIgnored(t *testing.T) {
	t.Parallel()
	h := &heat{code: heatHigh}
	b := withChecks(t, h.declared("heat", Everything))
	h.celsius = 90
	b.look()
	h.missing = noSensorText
	b.changes = nil
	for range 3 {
		b.each(time.Second, ms)
		b.finds()
		if b.result.State != OK {
			t.Fatalf("a check without a reading makes the machine %s", b.result.State)
		}
		if len(b.result.NotAvailable) != 1 ||
			b.result.NotAvailable[0] != (Absence{Check: "heat", Component: Machine, Why: noSensorText}) {
			t.Fatalf("not available are %+v", b.result.NotAvailable)
		}
	}
	if len(b.changes) != 1 || b.changes[0].NotAvailable != noSensorText || b.changes[0].Check != "heat" {
		t.Errorf("got %+v, want it once", b.changes)
	}
	h.missing = ""
	b.each(time.Second, ms)
	b.finds(heatHigh)
	h.missing = noSensorText
	b.each(time.Second, ms)
	if len(b.changes) != 1 {
		t.Errorf("an intermittent sensor: %+v", b.changes[1:])
	}
}

func TestAVitalCheckIsNeverIgnored(t *testing.T) {
	t.Parallel()
	h := &heat{code: heatHigh, missing: noSensorText}
	d := h.declared("heat", Everything)
	d.Vital = true
	b := withChecks(t, d)
	h.celsius = 81
	b.look()
	b.finds(heatHigh)
	if len(b.result.NotAvailable) > 0 {
		t.Errorf("not available are %+v", b.result.NotAvailable)
	}
}

func TestAHarmfulFindingSurvivesAMissingReading(t *testing.T) {
	t.Parallel()
	h := &heat{code: heatHigh, worse: heatTooHigh}
	b := withChecks(t, h.declared("heat", Everything))
	h.celsius = 96
	b.look()
	h.celsius, h.missing = 20, noSensorText
	b.look()
	b.finds(heatTooHigh)
	b.hasText("96 °C, limit 80 °C; there is no sensor, so this may be stale")
	if b.result.State != Slow {
		t.Errorf("got %s", b.result.State)
	}
	h.missing = ""
	b.look()
	b.finds()
}

func TestAFindingHidesBehindItsCauseUnlessItIsWorseOrGatesMore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gates          Gate
		worse          Code
		celsius        int
		want           []Code
		causeGates     Gate
		causeIsPresent bool
	}{
		{Everything, "", 81, []Code{fanSlow}, Everything, true},
		{Joins, "", 81, []Code{fanSlow}, Everything, true},
		{Everything, "", 81, []Code{fanSlow, heatHigh}, Joins, true},
		{Everything, heatTooHigh, 96, []Code{heatTooHigh, fanSlow}, Everything, true},
		{Everything, "", 81, []Code{heatHigh}, Everything, false},
	} {
		fan, h := &heat{code: fanSlow}, &heat{code: heatHigh, worse: c.worse}
		b := withChecks(t, fan.declared("fan", c.causeGates), h.declared("heat", c.gates, "fan"))
		h.celsius = c.celsius
		if c.causeIsPresent {
			fan.celsius = 81
		}
		b.look()
		b.finds(c.want...)
	}
}

func TestACheckKeepsItsMemoryAcrossARestart(t *testing.T) {
	t.Parallel()
	h := &heat{code: heatHigh}
	b := withChecks(t, h.declared("heat", Everything))
	data, err := b.j.Snapshot("boot")
	if err != nil {
		t.Fatal(err)
	}
	s, err := readSnapshot(data, "boot", b.now)
	if err != nil {
		t.Fatal(err)
	}
	again := &heat{code: heatHigh}
	j, err := judgeBy(append(defaultDeclarations(), again.declared("heat", Everything)))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.recall(s, b.now); err != nil || again.recalled != h.rounds {
		t.Errorf("%v: it remembers %d, want %d", err, again.recalled, h.rounds)
	}
	if _, err := Restore(data, DefaultThresholds(), "boot", b.now); err != nil {
		t.Errorf("a judge without that check refuses its memory: %v", err)
	}
}

func TestAnInvalidDeclarationIsRefused(t *testing.T) {
	t.Parallel()
	fine := func() declaration { return (&heat{code: heatHigh}).declared("heat", Everything) }
	for want, spoil := range map[string]func(*declaration){
		"heat is vital but gates nothing":                 func(d *declaration) { d.Vital, d.Gates = true, Nothing },
		"heat is optional and starts as":                  func(d *declaration) { d.start = Unknown },
		"TEMPERATURE_HIGH makes the health state UNKNOWN": func(d *declaration) { d.Problems[0].State = Unknown },
		"but TEMPERATURE_HIGH is about the disk":          func(d *declaration) { d.Problems[0].Component = Disk },
		"cpu is declared twice":                           func(d *declaration) { d.Name = "cpu" },
		"reuses CPU_STARVED of cpu":                       func(d *declaration) { d.Problems[0].Code = CPUStarved },
		"heat is behind fan":                              func(d *declaration) { d.Behind = []string{"fan"} },
		"undeclared finding WARM \"TEMPERATURE_HIGH\"":    func(d *declaration) { d.Problems[0].State = Slow },
	} {
		d := fine()
		spoil(&d)
		_, err := judgeBy(append(defaultDeclarations(), d))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := judgeBy(append(defaultDeclarations(), fine())); err != nil {
		t.Error(err)
	}
}

func TestEveryCheckIsDeclaredInFull(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	for _, c := range Checks(DefaultThresholds()) {
		if c.Name == "" || c.Source == "" || len(c.Limits) == 0 || len(c.Problems) == 0 {
			t.Errorf("not declared in full: %+v", c)
		}
		page.WriteString(described(c))
	}
	golden(t, "testdata/checks.golden", page.String())
}

// described formats a declaration.
func described(c Check) string {
	kind := "optional"
	if c.Vital {
		kind = "vital"
	}
	effect := "advises only"
	if c.Gates != Nothing {
		effect = "gates " + strings.Join(c.Gates.Names(), ", ")
	}
	page := fmt.Sprintf("%s (%s, %s; %s): %s\n", c.Name, c.Component, kind, effect, c.Source)
	for _, l := range c.Limits {
		sense := "over"
		if l.Below {
			sense = "below"
		}
		page += fmt.Sprintf("    %s: bad %s %.10g %s, good again at %.10g\n", l.Of, sense, l.Enter, l.Unit,
			l.Leave)
	}
	for _, p := range c.Problems {
		page += fmt.Sprintf("    %s %s\n", p.State, p.Code)
	}
	return page
}

func TestALimitHasHysteresis(t *testing.T) {
	t.Parallel()
	high, low := Limit{Enter: 20, Leave: 10}, Limit{Enter: 10, Leave: 20, Below: true}
	for _, c := range []struct {
		limit Limit
		value float64
		bad   bool
		want  bool
	}{
		{high, 20, false, false},
		{high, 21, false, true},
		{high, 11, true, true},
		{high, 10, true, false},
		{low, 10, false, false},
		{low, 9, false, true},
		{low, 19, true, true},
		{low, 20, true, false},
	} {
		if got := c.limit.beyond(c.value, c.bad); got != c.want {
			t.Errorf("%+v: %g, bad before %v, is beyond: %v", c.limit, c.value, c.bad, got)
		}
	}
}
