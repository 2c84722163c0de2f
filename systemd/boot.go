// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// BootID returns an ID of the current boot, which differs after every start of the system.
//
// In a container, the kernel reports the boot ID of the machine. systemd-nspawn mounts its own file over it, but
// services with their own /proc do not see that file, and other container managers mount none. A restarted container
// would seem never to have gone down. So in a container whose first process is systemd, the ID includes the start time
// of that process, which the kernel counts from the machine's boot.
func BootID() (string, error) { return bootID("/") }

func bootID(root string) (string, error) {
	id, err := os.ReadFile(filepath.Join(root, "proc/sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("cannot read the boot ID: %w → mount /proc", err)
	}
	name := strings.TrimSpace(string(id))
	// systemd as process 1 of a container writes this file. On a machine without it, the kernel's boot ID is enough.
	if _, err := os.Stat(filepath.Join(root, "run/systemd/container")); err != nil {
		return name, nil //nolint:nilerr // see above
	}
	stat, err := os.ReadFile(filepath.Join(root, "proc/1/stat"))
	if err != nil {
		return "", fmt.Errorf("cannot determine when this container was started: %w → make process 1 visible to "+
			"quorumd (ProtectProc=default)", err)
	}
	// The name of the program, in parentheses, can contain any character. The start time is the 20th field after it.
	const start = 20
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < start {
		return "", fmt.Errorf("cannot determine when this container was started: /proc/1/stat has only %d fields",
			len(fields))
	}
	return name + "-" + fields[start-1], nil
}
