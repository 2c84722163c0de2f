// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/execshim"
)

// binaryVersionTimeout is the timeout for a binary to print its version.
const binaryVersionTimeout = 5 * time.Second

// BinaryVersion returns the version printed by an etcd binary, such as "3.6.16". The binary's disk may be unhealthy,
// so the command line child executes it, and this function may return long after the context has ended.
func BinaryVersion(ctx context.Context, child []string, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, binaryVersionTimeout)
	defer cancel()
	command := execshim.New(ctx, child, path, "--version")
	command.WaitDelay = time.Second
	command.Env = []string{} // without our ETCD_ variables, which would affect it
	var out answer
	command.Stdout = &out
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("cannot get the version of %s: %w; check etcd.binary", path, err)
	}
	version := execshim.EtcdVersion(out.text)
	if version == "" {
		return "", fmt.Errorf("cannot get the version of %s: its output is not etcd's; check etcd.binary", path)
	}
	return version, nil
}

// answer keeps a program's output. It fails the write if the output is too large, which closes the pipe.
type answer struct{ text []byte }

// versionBytes is the largest output; etcd's has about 100 bytes.
const versionBytes = 64 << 10

// Write accepts all of p or nothing.
func (a *answer) Write(p []byte) (int, error) {
	if len(a.text)+len(p) > versionBytes {
		return 0, errors.New("it prints too much for a version")
	}
	a.text = append(a.text, p...)
	return len(p), nil
}
