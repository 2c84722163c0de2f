// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// snapshotFile saves a snapshot of a real etcd that stores events and pods.
func snapshotFile(t *testing.T) string {
	t.Helper()
	client := testbed.StartCluster(t, 1, testbed.ClusterOptions{}).Client(t)
	put := func(key string, bytes int) {
		_, err := client.Put(t.Context(), key, strings.Repeat("x", bytes))
		must(t, err)
	}
	for i := range 40 {
		put(fmt.Sprintf("/registry/events/default/%d", i), 10<<10)
		put("/registry/pods/default/web", 20<<10)
	}
	_, err := client.Delete(t.Context(), "/registry/events/default/0")
	must(t, err)
	from, err := client.Snapshot(t.Context())
	must(t, err)
	defer from.Close()
	path := filepath.Join(t.TempDir(), "etcd.db")
	to, err := os.Create(path)
	must(t, err)
	defer to.Close()
	_, err = io.Copy(to, from)
	must(t, err)
	return path
}

func TestSnapshotUsageNamesThePrefixesThatFillARealDatabase(t *testing.T) {
	t.Parallel()
	path := snapshotFile(t)
	r := quorumctl(t, "", "snapshot", "usage", path)
	for _, want := range []string{
		"392 KiB   10.1 KiB  39    41       /registry/events/", "20.1 KiB  782 KiB   1     40       /registry/pods/",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s%s", want, r.stdout, r.stderr)
		}
	}
	json := quorumctl(t, "", "snapshot", "usage", path, "--depth", "1", "-o", "json")
	if fit := matchingSchemas(t, []string{"snapshot", "usage", "-o", "json"}, json.stdout); len(fit) != 1 ||
		!strings.Contains(json.stdout, `"prefix": "/registry/"`) {
		t.Errorf("schemas %v: %s%s", fit, json.stdout, json.stderr)
	}
}

func TestSnapshotUsageRefusesWhatIsNoDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	must(t, os.WriteFile(text, []byte("not a database"), 0o600))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{filepath.Join(dir, "missing")}, exitFault, "no such file"},
		{[]string{dir}, exitFault, "not a regular file"},
		{[]string{text}, exitFault, "the snapshot is damaged"},
		{[]string{text, "--depth", "0"}, exitUsage, "--depth must be a number from 1 to 8"},
		{[]string{text, "--depth", "9"}, exitUsage, "--depth must be a number from 1 to 8"},
		{nil, exitUsage, ""},
	} {
		r := quorumctl(t, "", append([]string{"snapshot", "usage"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) || r.stdout != "" {
			t.Errorf("%v: exit %d: %s%s", c.args, r.code, r.stdout, r.stderr)
		}
	}
}
