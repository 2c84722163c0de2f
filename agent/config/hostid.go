// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
)

// HostID returns the ID of a host that has no configured ID: a hash of the machine ID, which itself must not be exposed
// (machine-id(5)).
func HostID() (string, error) { return hostID("/etc/machine-id") }

func hostID(path string) (string, error) {
	id, err := os.ReadFile(path)
	id = bytes.TrimSpace(id)
	if err == nil && (len(id) == 0 || string(id) == "uninitialized") {
		err = errors.New(path + " contains no machine ID")
	}
	if err != nil {
		return "", fmt.Errorf("cannot derive the host ID: %w; set host.id", err)
	}
	mac := hmac.New(sha256.New, id)
	mac.Write([]byte("quorumd host"))
	return hex.EncodeToString(mac.Sum(nil)[:8]), nil
}
