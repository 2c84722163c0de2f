// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build root

package reach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsClosedToTheUserOfTheServiceIsFoundByRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("cannot look as nobody: run the test as root")
	}
	dir, err := os.MkdirTemp("/tmp", "reach")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	look := func() string {
		problems, err := Look(t.Context(), filepath.Join(dir, "quorumd.yaml"), "nobody")
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, p := range problems {
			said = append(said, p.String())
		}
		return strings.Join(said, "\n")
	}
	configuration(t, dir, 0o600)
	if said := look(); !strings.Contains(said, "cannot read the configuration") ||
		!strings.Contains(said, "permission denied") {
		t.Errorf("in a closed directory: %s", said)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	said := look()
	for _, wanted := range []string{
		"cluster.tls.key: " + dir + "/client.key cannot be read: permission denied",
		"paths.state: " + dir + " cannot be written: permission denied",
	} {
		if !strings.Contains(said, wanted) {
			t.Errorf("it does not say %q but\n%s", wanted, said)
		}
	}
	if strings.Contains(said, "paths.runtime") {
		t.Errorf("a directory that systemd makes is missed: %s", said)
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir+"/client.key", 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if said := look(); strings.Contains(said, "permission denied") || !strings.Contains(said, "is not PEM") {
		t.Errorf("what is its own: %s", said)
	}
}
