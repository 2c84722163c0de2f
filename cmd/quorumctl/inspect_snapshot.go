// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/child"
	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/record"
)

// inspectCommand is the hidden command of the child that reads an unverified database file. A child has its own limits
// on memory and CPU time, so that a malicious file cannot exhaust the machine.
const inspectCommand = "inspect-snapshot"

// inspectMemory is the child's memory limit in bytes, enough for 20 to 40 million keys; each needs 50 to 100 bytes.
const inspectMemory = 2 << 30

// inspectTime is the child's CPU time limit.
const inspectTime = time.Hour

// inspection is the child's result.
type inspection struct {
	Contents record.Contents `json:"contents"`
	Size     int64           `json:"size"`
	SHA256   string          `json:"sha256"`
	Usage    *etcddb.Usage   `json:"usage,omitempty"` // instead of the other fields, if it was requested
}

// openDatabase opens a snapshot or database file for inspectFile.
func openDatabase(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("not a regular file"), file.Close())
	}
	return file, nil
}

// inspectFile inspects a file in a child. With an argument, the depth of the prefixes, the child returns the usage by
// prefix instead.
func inspectFile(ctx context.Context, file *os.File, args ...string) (found inspection, err error) {
	command := exec.CommandContext(ctx, "/proc/self/exe", append([]string{inspectCommand}, args...)...)
	command.Stdin = file
	err = child.Run(command, child.MaxLine, nil, &found)
	if ctx.Err() != nil {
		return found, ctx.Err()
	}
	if _, is := errors.AsType[*exec.ExitError](err); is { // for example, it ran out of memory
		return found, fmt.Errorf("cannot read the database in it: %w", err)
	}
	return found, err
}

// inspectMain is the main function of the child, which reads the file on its standard input.
func inspectMain(ctx context.Context, args []string, file *os.File, out io.Writer) error {
	if err := (etcddb.Limits{Memory: inspectMemory, CPU: inspectTime}).Confine(); err != nil {
		return err
	}
	return child.Main(ctx, out, func(ctx context.Context, _ *child.Progress) (found inspection, err error) {
		if len(args) > 0 {
			depth, err := strconv.Atoi(args[0])
			if err != nil {
				return found, err
			}
			usage, err := etcddb.UsageOf(ctx, file, depth)
			found.Usage = &usage
			return found, err
		}
		sum, none := sha256.New(), func(int64) {}
		if found.Size, err = etcddb.Receive(ctx, io.Discard, io.TeeReader(file, sum), none); err != nil {
			return found, err
		}
		found.SHA256 = hex.EncodeToString(sum.Sum(nil))
		found.Contents, err = etcddb.Inspect(ctx, file, none)
		return found, err
	})
}
