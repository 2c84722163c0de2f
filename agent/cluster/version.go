// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/execshim"
)

// binaryVersionTimeout is the timeout for a binary to print its version.
const binaryVersionTimeout = 5 * time.Second

// BinaryVersion returns the version printed by an etcd binary, such as "3.6.16". child is the command line of
// a process that executes the binary, whose disk may hang. BinaryVersion may return long after the context has ended.
func BinaryVersion(ctx context.Context, child []string, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, binaryVersionTimeout)
	defer cancel()
	out, status, err := execshim.Output(ctx, child, path, "--version")
	if err == nil && status != 0 {
		err = fmt.Errorf("it exited with status %d", status)
	}
	if err != nil {
		return "", fmt.Errorf("cannot get the version of %s: %w; check etcd.binary", path, err)
	}
	version := execshim.EtcdVersion(out)
	if version == "" {
		return "", fmt.Errorf("cannot get the version of %s: its output is not etcd's; check etcd.binary", path)
	}
	return version, nil
}
