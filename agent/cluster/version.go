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

// BinaryVersion returns the version printed by an etcd binary, such as "3.6.16". child is the command line of
// a process that executes the binary, whose disk may hang. BinaryVersion may return long after the context has ended.
func BinaryVersion(ctx context.Context, child []string, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, binaryVersionTimeout)
	defer cancel()
	command := execshim.New(ctx, child, path, "--version")
	command.WaitDelay = time.Second
	command.Env = []string{} // this process's ETCD_ variables would affect it
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

// answer keeps a program's output. If the output is too large, a write fails, which closes the pipe.
type answer struct{ text []byte }

// versionBytes bounds the output; etcd's has about 100 bytes.
const versionBytes = 64 << 10

// Write accepts all of p or nothing.
func (a *answer) Write(p []byte) (int, error) {
	if len(a.text)+len(p) > versionBytes {
		return 0, errors.New("its output is too long for a version")
	}
	a.text = append(a.text, p...)
	return len(p), nil
}
