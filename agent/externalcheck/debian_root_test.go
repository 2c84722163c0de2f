// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build root

package externalcheck

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// The plugins of Debian's monitoring-plugins-basic write figures in three formats.
func TestOutputOfDebiansPluginsIsParsed(t *testing.T) {
	t.Parallel()
	const with = "exec /usr/lib/nagios/plugins/"
	programs := map[string]string{
		"load":    with + "check_load -w 1000,1000,1000 -c 2000,2000,2000",
		"disk":    with + "check_disk -w 0% -c 0% -p /",
		"procs":   with + "check_procs -w 0:0 -c 0:1000000",
		"silence": with + "check_tcp -H 127.0.0.1 -p 1",
		"wrong":   with + "check_load --no-such-option",
	}
	b := open(t, scripts(t, programs), 10*time.Second)
	ctx, end := context.WithCancel(t.Context())
	defer b.settle(end)
	for name, want := range map[string]struct {
		state  health.State
		figure string // one of its figures, if any
	}{
		"load": {health.OK, "load1"}, "disk": {health.OK, "/"}, "procs": {health.Warm, "procs"},
		"silence": {health.Slow, ""},
	} {
		got := b.until(ctx, name, reported)
		if got.Absent != "" || got.State != want.state || got.Text == "" {
			t.Errorf("%s: %+v, want %s", name, got, want.state)
		}
		if want.figure != "" && !slices.ContainsFunc(got.Figures, func(f health.ExternalCheckFigure) bool {
			return f.Label == want.figure && f.Value > 0
		}) {
			t.Errorf("%s has the figures %+v, want %s among them", name, got.Figures, want.figure)
		}
	}
	if got := b.until(ctx, "wrong", reported); got.Absent != "it reports UNKNOWN" {
		t.Errorf("with an invalid option: %+v", got)
	}
}
