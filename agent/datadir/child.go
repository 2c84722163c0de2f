// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/child"
)

// Names of the hidden commands that run in the child.
const (
	InspectCommand   = "inspect-data"
	MoveAsideCommand = "move-data-aside"
)

// maxLine limits a line of a child's output, in bytes, because the child runs as etcd's user and is not trusted.
const maxLine = 1 << 20

// Dir is a data directory accessed through child processes.
type Dir struct {
	Command []string // runs this program, without the name of the hidden command
	DataDir string
	WALDir  string // empty if the WAL is in the data directory
}

// Inspect reads the directory.
func (d Dir) Inspect(ctx context.Context) (c Contents, err error) {
	if err := d.run(ctx, InspectCommand, &c); err != nil {
		return Contents{}, fmt.Errorf("cannot inspect %s: %w", d.DataDir, err)
	}
	return c, nil
}

// MoveAside moves the member's data aside and returns the new names.
func (d Dir) MoveAside(ctx context.Context) (moved []string, err error) {
	err = d.run(ctx, MoveAsideCommand, &moved)
	return moved, err
}

// run runs a child and waits for its end. A child that hangs in the kernel ends only when the disk answers, so the
// caller must not wait in its main loop.
func (d Dir) run(ctx context.Context, verb string, result any) error {
	args := slices.Concat(d.Command[1:], []string{verb, d.DataDir, d.WALDir})
	err := child.Run(exec.CommandContext(ctx, d.Command[0], args...), maxLine, nil, result)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the disk does not respond: %w", ctx.Err())
	}
	return err
}

// InspectMain runs in the child that inspects the directories. Its arguments are the data and the WAL directory.
func InspectMain(args []string, stdout io.Writer) error {
	return runMain(args, stdout, func() (Contents, error) { return Inspect(args[0], args[1]), nil })
}

// MoveAsideMain runs in the child that moves the data aside. Its arguments are the data and the WAL directory.
func MoveAsideMain(args []string, stdout io.Writer) error {
	return runMain(args, stdout, func() ([]string, error) { return MoveAside(args[0], args[1], time.Now()) })
}

func runMain[T any](args []string, stdout io.Writer, do func() (T, error)) error {
	if len(args) != 2 {
		return errors.New("two directories are expected")
	}
	return child.Main(context.Background(), stdout, func(context.Context, *child.Progress) (T, error) { return do() })
}
