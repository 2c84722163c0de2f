// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// Names of the hidden commands that run in the child.
const (
	InspectCommand   = "inspect-data"
	MoveAsideCommand = "move-data-aside"
)

// outputWait is how long to wait for the output of a killed child. A child that hangs in the kernel exists until the
// disk answers: the caller waits for that outside of its loop.
const outputWait = 500 * time.Millisecond

// Dir is a data directory accessed through child processes.
type Dir struct {
	Command []string // runs this program, without the name of the hidden command
	DataDir string
	WALDir  string // empty if the WAL is in the data directory
}

// Inspect reads the directory.
func (d Dir) Inspect(ctx context.Context) (Contents, error) {
	out, err := d.run(ctx, InspectCommand)
	if err != nil {
		return Contents{}, fmt.Errorf("cannot inspect %s: %w", d.DataDir, err)
	}
	var c Contents
	if err := json.Unmarshal(out, &c); err != nil {
		return Contents{}, fmt.Errorf("cannot inspect %s: %w", d.DataDir, err)
	}
	return c, nil
}

// MoveAside moves the member's data aside and returns the new names.
func (d Dir) MoveAside(ctx context.Context) ([]string, error) {
	out, err := d.run(ctx, MoveAsideCommand)
	if err != nil {
		return nil, err
	}
	var moved []string
	if err := json.Unmarshal(out, &moved); err != nil {
		return nil, fmt.Errorf("cannot move %s aside: %w", d.DataDir, err)
	}
	return moved, nil
}

func (d Dir) run(ctx context.Context, verb string) ([]byte, error) {
	args := append(append([]string{}, d.Command[1:]...), verb, d.DataDir, d.WALDir)
	command := exec.CommandContext(ctx, d.Command[0], args...)
	command.WaitDelay = outputWait
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the disk does not respond: %w", ctx.Err())
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && stderr.Len() > 0 {
		return nil, errors.New(string(bytes.TrimSpace(stderr.Bytes())))
	}
	return out, err
}

// InspectMain runs in the child that inspects. Its arguments are the data and the WAL directory.
func InspectMain(args []string, stdout io.Writer) error {
	if len(args) != 2 {
		return errors.New("two directories are expected")
	}
	return json.NewEncoder(stdout).Encode(Inspect(args[0], args[1]))
}

// MoveAsideMain runs in the child that moves. Its arguments are the data and the WAL directory.
func MoveAsideMain(args []string, stdout io.Writer) error {
	if len(args) != 2 {
		return errors.New("two directories are expected")
	}
	moved, err := MoveAside(args[0], args[1], time.Now())
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(moved)
}
