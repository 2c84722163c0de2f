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

// inspectCommand is the hidden command of the child that reads an unverified database file: root builds its plan from
// the child's results, and the child's memory is limited.
const inspectCommand = "inspect-snapshot"

// inspectMemory is the child's memory limit in bytes: about 50 million keys fit.
const inspectMemory = 2 << 30

// inspectTime is the child's CPU time limit.
const inspectTime = time.Hour

// inspection is what the child found in a file.
type inspection struct {
	Contents record.Contents `json:"contents"`
	Size     int64           `json:"size"`
	SHA256   string          `json:"sha256"`
}

// inspectFile has a child read a file to its end.
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
	case err != nil: // Go's own words for too little memory fill pages
		line, _, _ := bytes.Cut(stderr.Bytes(), []byte("\n"))
		return found, fmt.Errorf("cannot read the database in it: %w: %s", err, line)
	}
	return found, json.Unmarshal(out, &found)
}

// inspectMain is the child: it reads the file on its standard input.
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
