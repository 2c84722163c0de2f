// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/record"
)

// inspectCommand is the hidden command of the child that reads an unverified database file. A child has its own limits
// of memory and CPU time, so that a malicious file cannot exhaust the machine.
const inspectCommand = "inspect-snapshot"

// inspectMemory is the child's memory limit in bytes, enough for about 50 million keys.
const inspectMemory = 2 << 30

// inspectTime is the child's CPU time limit.
const inspectTime = time.Hour

// inspection is the child's result.
type inspection struct {
	Contents record.Contents `json:"contents"`
	Size     int64           `json:"size"`
	SHA256   string          `json:"sha256"`
}

// inspectFile inspects a file in a child.
func inspectFile(ctx context.Context, file *os.File) (found inspection, err error) {
	child := exec.CommandContext(ctx, "/proc/self/exe", inspectCommand)
	var stderr bytes.Buffer
	child.Stdin, child.Stderr = file, &stderr
	out, err := child.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return found, ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() == exitFault && stderr.Len() > 0:
		return found, errors.New(string(bytes.TrimSpace(stderr.Bytes())))
	case err != nil: // Go's crash report for lack of memory is long; its first line is enough
		line, _, _ := bytes.Cut(stderr.Bytes(), []byte("\n"))
		return found, fmt.Errorf("cannot read the database in it: %w: %s", err, line)
	}
	return found, json.Unmarshal(out, &found)
}

// inspectMain is the main function of the child, which reads the file on its standard input.
func inspectMain(ctx context.Context, file *os.File, out io.Writer) error {
	if err := (etcddb.Limits{Memory: inspectMemory, CPU: inspectTime}).Confine(); err != nil {
		return err
	}
	sum, none := sha256.New(), func(int64) {}
	size, err := etcddb.Receive(ctx, io.Discard, io.TeeReader(file, sum), none)
	if err != nil {
		return err
	}
	contents, err := etcddb.Inspect(ctx, file, none)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(inspection{contents, size, hex.EncodeToString(sum.Sum(nil))})
}
