// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"testing"
	"time"
)

func TestTheHealthyPeriodOutlivesTheAgentButNotAReboot(t *testing.T) {
	t.Parallel()
	state, runtime := t.TempDir(), t.TempDir()
	open := func() *State {
		f, err := Open(HostFiles{}, state, runtime, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open()
	s := HealthyPeriod{BootID: "boot-1", Member: 9, Began: time.Hour, Seen: 2 * time.Hour}
	if err := f.NoteHealthyPeriod(s); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bootID string
		now    time.Duration
		want   HealthyPeriod
	}{
		"a restarted agent": {"boot-1", 3 * time.Hour, s},
		"after a reboot":    {"boot-2", 3 * time.Hour, HealthyPeriod{}},
		"in the future":     {"boot-1", time.Hour, HealthyPeriod{}},
	} {
		if got := open().Noted(c.bootID, c.now, 0).HealthyPeriod; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if err := f.NoteHealthyPeriod(HealthyPeriod{}); err != nil ||
		f.Noted("boot-1", 3*time.Hour, 0).HealthyPeriod != (HealthyPeriod{}) {
		t.Errorf("it is not removed: %v", err)
	}
}
