// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestACheckOfTheNextEtcdCountsUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "etcd")
	write := func(text string) string {
		t.Helper()
		if err := os.WriteFile(binary+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(binary+".new", binary); err != nil {
			t.Fatal(err)
		}
		return versionOfFile(binary)
	}
	missing := versionOfFile(binary)
	checked := checkedNext{pid: 42, binary: write("3.6"), at: time.Now()}
	for what, c := range map[string]struct {
		change func(now *checkedNext)
		same   bool
	}{
		"nothing":             {func(*checkedNext) {}, true},
		"a minute later":      {func(now *checkedNext) { now.at = now.at.Add(time.Minute) }, true},
		"long after":          {func(now *checkedNext) { now.at = now.at.Add(nextEvery) }, false},
		"the clock went back": {func(now *checkedNext) { now.at = now.at.Add(-time.Second) }, false},
		"etcd restarted":      {func(now *checkedNext) { now.pid++ }, false},
		"another binary":      {func(now *checkedNext) { now.binary = write("3.7.3") }, false},
		"no binary":           {func(now *checkedNext) { now.binary = missing }, false},
		"another setting":     {func(now *checkedNext) { now.unit = "ETCD_PROXY=off" }, false},
		"another file":        {func(now *checkedNext) { now.file = "2" }, false},
	} {
		now := checked
		c.change(&now)
		if got := checked.same(now); got != c.same {
			t.Errorf("%s: the same is %t", what, got)
		}
	}
}
