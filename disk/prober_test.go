// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestSettingsSurviveTheCommandLine(t *testing.T) {
	t.Parallel()
	sent, err := Options{Dir: "/a dir", Target: "/t", WALInterval: 90 * time.Second, BurstRate: 7}.settings()
	if err != nil {
		t.Fatal(err)
	}
	want := settings{
		dir: "/a dir", target: "/t", direct: time.Second, wal: 90 * time.Second,
		verify: time.Minute, usage: 30 * time.Second, burst: 7,
	}
	got, err := parseSettings(sent.args(), t.Output())
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestAChildStartedByHandPrintsAnExplanation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, exitUsage, "the probe directory"},
		{[]string{"-no-such-flag"}, exitUsage, "no-such-flag"},
		{
			settings{
				dir: "/nowhere", target: "/", direct: time.Second, wal: time.Second, verify: time.Second,
				usage: time.Second, burst: 1,
			}.args(),
			exitSoftware, "internal command",
		},
	} {
		cmd := exec.Command("/proc/self/exe", append([]string{asChild}, c.args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%q: exit code %d, output %q", c.args, code, stderr.String())
		}
	}
}
