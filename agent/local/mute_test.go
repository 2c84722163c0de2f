// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

func TestAMuteHoldsUntilItsTimeOrUntilThingsGetWorse(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	m := Mute{Code: health.MemoryLow, State: health.Warm, Since: now, Until: now.Add(time.Hour)}
	m.Count = 1
	found := func(state health.State, gates health.Gate) []health.Finding {
		return []health.Finding{
			{Code: health.DiskFsyncSlow, State: health.Slow, Gates: health.Everything},
			{Code: health.MemoryLow, State: state, Gates: gates},
		}
	}
	for name, c := range map[string]struct {
		found []health.Finding
		at    time.Duration
		why   string
	}{
		"it is found as it was": {found(health.Warm, health.Nothing), 0, ""},
		"it is not found":       {nil, time.Minute, ""},
		"the last moment":       {found(health.Warm, health.Nothing), time.Hour - 1, ""},
		"its time is over":      {nil, time.Hour, "its time is over"},
		"it has become worse":   {found(health.Slow, health.Nothing), 0, "worse: SLOW, and was WARM"},
		"as many are found":     {[]health.Finding{{Code: health.MemoryLow, State: health.Warm, Count: 1}}, 0, ""},
		"more are found": {
			[]health.Finding{{Code: health.MemoryLow, State: health.Warm, Count: 2}},
			0,
			"more is found: 2 of them, and it was 1",
		},
		"it gates something meantime": {found(health.Warm, health.Joins), 0, "it gates joins now"},
	} {
		if why := m.Over(c.found, now.Add(c.at)); why != c.why && (c.why == "" || !strings.Contains(why, c.why)) {
			t.Errorf("%s: it is over because %q, want %q", name, why, c.why)
		}
	}
}

func TestMutesSurviveARestartAreBoundedAndEndForGood(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *State {
		t.Helper()
		f, err := Open(HostFiles{}, dir+"/state", dir+"/run", nil)
		must(t, err)
		return f
	}
	now := time.Unix(1e9, 0).UTC()
	mute := func(code string) Mute {
		return Mute{Code: health.Code(code), State: health.Warm, By: "root", Since: now, Until: now.Add(time.Hour)}
	}
	f := open()
	for i := range MaxMutes {
		must(t, f.Mute(mute(fmt.Sprintf("C%d", i))))
	}
	must(t, f.Mute(mute("C0"))) // in place of the one that stands
	if err := f.Mute(mute("MORE")); !errors.Is(err, ErrTooManyMutes) {
		t.Errorf("one more than %d: %v", MaxMutes, err)
	}
	f = open()
	worse := []health.Finding{{Code: "C1", State: health.Slow}}
	hold, over := f.Mutes(worse, now)
	if len(hold) != MaxMutes-1 || len(over) != 1 || over[0].Code != "C1" {
		t.Fatalf("%d hold, over are %+v", len(hold), over)
	}
	renewed := mute("C1")
	renewed.Until = now.Add(2 * time.Hour)
	must(t, f.Mute(renewed))
	must(t, f.EndMutes(over)) // of the one before
	if hold, _ := f.Mutes(nil, now.Add(90*time.Minute)); len(hold) != 1 || hold[0] != renewed {
		t.Errorf("what a person has renewed was ended: %+v", hold)
	}
	_, over = f.Mutes(worse, now)
	must(t, f.EndMutes(over))
	if hold, over := open().Mutes(nil, now); len(hold) != MaxMutes-1 || len(over) != 0 {
		t.Errorf("one that broke is back when things are better: %d hold, over are %+v", len(hold), over)
	}
	if was, err := f.Unmute("C2"); !was || err != nil {
		t.Errorf("unmute: %t, %v", was, err)
	}
	if was, err := f.Unmute("C2"); was || err != nil {
		t.Errorf("unmute twice: %t, %v", was, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "state", mutesName), []byte(`[{"code":`), 0o600))
	if hold, over := open().Mutes(nil, now); len(hold)+len(over) != 0 {
		t.Errorf("a damaged file mutes %+v, %+v", hold, over)
	}
}
