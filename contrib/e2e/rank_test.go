// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// TestEveryHostReportsTheSameJoinQueue has three spares in the join queue, and queries every host about each of them.
func TestEveryHostReportsTheSameJoinQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 4, voters: 1, set: quickTimes()})
	w.start()
	w.bootstrap()
	ranks := func(by *host) (all string) {
		for _, h := range w.hosts[1:] {
			explained := me().ctl(by, "explain", h.Options.Name).output
			for line := range strings.Lines(explained) {
				if strings.HasPrefix(line, "join queue: ") {
					all += h.Options.Name + ": " + line
				}
			}
		}
		return all
	}
	const first, second, third = "join queue: position 1", "join queue: position 2", "join queue: position 3"
	w.eventually("all report the same three positions", func() bool {
		want := ranks(w.hosts[0])
		for _, place := range []string{first, second, third} {
			if strings.Count(want, place) != 1 {
				return false
			}
		}
		for _, by := range w.hosts[1:] {
			if ranks(by) != want {
				return false
			}
		}
		return true
	})
	t.Log(ranks(w.hosts[3]))
}
