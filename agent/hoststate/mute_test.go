// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

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
	mute := func(code string) health.Mute {
		return health.Mute{
			Code: health.Code(code), State: health.Warm, By: "root", Since: now, Until: now.Add(time.Hour),
		}
	}
	f := open()
	noted := func(m health.Mute) bool {
		t.Helper()
		refused, err := f.Mute(m)
		must(t, err)
		return refused == nil
	}
	for i := range policy.MaxMutes {
		if !noted(mute(fmt.Sprintf("C%d", i))) {
			t.Fatalf("mute %d is refused", i)
		}
	}
	if !noted(mute("C0")) {
		t.Error("a mute that replaces an existing one is refused")
	}
	if noted(mute("MORE")) {
		t.Errorf("more than %d mutes are recorded", policy.MaxMutes)
	}
	f = open()
	worse := []health.Finding{{Code: "C1", State: health.Slow}}
	hold, over := f.Mutes(worse, now)
	if len(hold) != policy.MaxMutes-1 || len(over) != 1 || over[0].Code != "C1" {
		t.Fatalf("%d in force, ended: %+v", len(hold), over)
	}
	renewed := mute("C1")
	renewed.Until = now.Add(2 * time.Hour)
	noted(renewed)
	must(t, f.EndMutes(over)) // this end belongs to the mute before its renewal
	if hold, _ := f.Mutes(nil, now.Add(90*time.Minute)); len(hold) != 1 || hold[0] != renewed {
		t.Errorf("a renewed mute was ended: %+v", hold)
	}
	_, over = f.Mutes(worse, now)
	must(t, f.EndMutes(over))
	if hold, over := open().Mutes(nil, now); len(hold) != policy.MaxMutes-1 || len(over) != 0 {
		t.Errorf("an ended mute is back after the finding improved: %d in force, ended: %+v", len(hold), over)
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
