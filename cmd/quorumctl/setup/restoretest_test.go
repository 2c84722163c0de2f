// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
)

func TestHostThatNeverRunsRestoreTestsCausesAWarning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*config.Config)
		want   string
	}{
		"off":       {func(c *config.Config) { c.Backup.RestoreTest, c.Mode = 0, config.ModeObserve }, ""},
		"observing": {func(c *config.Config) { c.Mode = config.ModeObserve }, "set mode: manage"},
		"no key": {func(c *config.Config) {
			c.Backup.EncryptTo = []string{"age1"}
		}, "cannot decrypt snapshots; set backup.identityFile"},
		"one votes": {func(c *config.Config) { c.Cluster.Voters = 1 }, "the only voter leads"},
		// proc reports no free space
		"no room": {func(c *config.Config) { c.Paths.State = "/proc" }, ": 0 MiB are free in /proc, but 192 MiB"},
	} {
		var conf config.Config
		conf.Mode, conf.Cluster.Voters, conf.Backup.RestoreTest = config.ModeManage, 3, config.Grace(24*time.Hour)
		conf.Paths.State, conf.Etcd.DataDir = t.TempDir(), t.TempDir()
		c.change(&conf)
		if got := NoRestoreTest(conf); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
