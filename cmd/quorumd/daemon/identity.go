// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// machineID derives a host ID from the machine ID, which itself must not be shown to others
// (machine-id(5)).
func machineID(path string) (string, error) {
	id, err := os.ReadFile(path)
	id = bytes.TrimSpace(id)
	if err == nil && (len(id) == 0 || string(id) == "uninitialized") {
		err = errors.New(path + " holds no machine ID")
	}
	if err != nil {
		return "", fmt.Errorf("cannot tell who this host is: %w; set host.id", err)
	}
	mac := hmac.New(sha256.New, id)
	mac.Write([]byte("quorumd host"))
	return hex.EncodeToString(mac.Sum(nil)[:8]), nil
}

// bootID gives the name of this boot.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("cannot read the boot ID: %w", err)
	}
	return string(bytes.TrimSpace(id)), nil
}

// sinceBoot is the clock of the agent: it never jumps, and runs on while the machine is
// suspended.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("CLOCK_BOOTTIME: %v", err)) // every Linux since 2.6.39 has it
	}
	return time.Duration(t.Nano())
}
