// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ID is a 64 bit number that JSON readers of other languages do not round.
type ID uint64

// MarshalText writes it as hexadecimal digits.
func (n ID) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%x", uint64(n)), nil }

// UnmarshalText reads what MarshalText has written.
func (n *ID) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "%x", (*uint64)(n))
	return err
}

// Files is where the agent's own few files lie. Its methods may hang with the disk.
type Files interface {
	// MakeDir makes a directory, and those above it, if it is not there.
	MakeDir(path string) error
	// Read gives a file; the error is fs.ErrNotExist when there is none.
	Read(path string) ([]byte, error)
	// Write replaces a file so that a crash of the agent leaves the old or the new one; a durable
	// write also outlives a loss of power.
	Write(path string, data []byte, durable bool) error
	// Remove removes a file; one that is not there is fine.
	Remove(path string) error
}

// HostFiles are files in the file systems of the host.
type HostFiles struct{}

// MakeDir makes a directory that others may read.
func (HostFiles) MakeDir(path string) error { return os.MkdirAll(path, 0o755) }

// Read gives a file.
func (HostFiles) Read(path string) ([]byte, error) { return os.ReadFile(path) }

// Write replaces a file: a new one is written beside it and renamed.
func (HostFiles) Write(path string, data []byte, durable bool) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer os.Remove(temp.Name()) // it is gone when all went well
	_, err = temp.Write(data)
	if err == nil && durable {
		err = temp.Sync()
	}
	err = errors.Join(err, temp.Chmod(0o644), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err == nil && durable {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// Remove removes a file, for good: after a loss of power it is not there again.
func (HostFiles) Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return err
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func readJSON(disk Files, path string, into any) (found bool, err error) {
	b, err := disk.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return false, fmt.Errorf("cannot read %s: %w; move it away if it is damaged", path, err)
	}
	return true, nil
}

func writeJSON(disk Files, path string, value any, durable bool) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return disk.Write(path, append(b, '\n'), durable)
}

// Within does what may hang with the disk beside the caller, who is answered before ctx has ended. What was
// begun goes on, and may still succeed.
func Within(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.New("the disk does not answer; what was asked may still be noted")
	}
}
