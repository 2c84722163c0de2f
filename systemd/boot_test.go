// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestABootIDInAContainerIsTheContainers(t *testing.T) {
	t.Parallel()
	const machine = "0b2a7a9c-6d0e-4a53-9f0e-000000000001"
	lay := func(root, path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stat := func(start int) string {
		return fmt.Sprintf("1 (sys) temd 9) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 170000000 3000\n", start)
	}
	for what, c := range map[string]struct {
		container, stat, want string
	}{
		"a machine":                  {"", stat(7), machine},
		"a machine hides process 1":  {"", "", machine},
		"a container":                {"systemd-nspawn\n", stat(4711), machine + "-4711"},
		"the container's next start": {"systemd-nspawn\n", stat(9000), machine + "-9000"},
		"a container hides it":       {"lxc\n", "", ""},
		"invalid stat":               {"lxc\n", "1 (x) S 0\n", ""},
	} {
		root := t.TempDir()
		lay(root, "proc/sys/kernel/random/boot_id", machine+"\n")
		if c.container != "" {
			lay(root, "run/systemd/container", c.container)
		}
		if c.stat != "" {
			lay(root, "proc/1/stat", c.stat)
		}
		if got, err := bootID(root); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v, want %q", what, got, err, c.want)
		}
	}
	if _, err := bootID(t.TempDir()); err == nil {
		t.Error("without /proc there is a boot ID")
	}
	here, err := BootID()
	again, errAgain := BootID()
	if err != nil || errAgain != nil || here != again || here == "" {
		t.Errorf("here: %q, %v; %q, %v", here, err, again, errAgain)
	}
}
