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

	"github.com/quorumd/quorumd/disk/atomicfile"
)

// ID is a 64-bit number, encoded as a string in JSON because many JSON parsers would round it.
type ID uint64

// MarshalText encodes the ID in hexadecimal.
func (n ID) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%x", uint64(n)), nil }

// UnmarshalText decodes the output of MarshalText.
func (n *ID) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "%x", (*uint64)(n))
	return err
}

// Files reads and writes the agent's own files. Its methods hang if the disk does.
type Files interface {
	// MakeDir creates a directory and its parents unless they exist.
	MakeDir(path string) error
	// Read returns a file's content; the error is fs.ErrNotExist if there is none.
	Read(path string) ([]byte, error)
	// Write replaces a file atomically: after a crash of the agent, the file has either the old or the new content. A
	// durable write also survives a power loss.
	Write(path string, data []byte, durable bool) error
	// Remove removes a file. A missing file is not an error.
	Remove(path string) error
}

// HostFiles implements Files with the host's file system.
type HostFiles struct{}

// MakeDir creates a directory that all users may read.
func (HostFiles) MakeDir(path string) error { return os.MkdirAll(path, 0o755) }

// Read returns a file's content.
func (HostFiles) Read(path string) ([]byte, error) { return os.ReadFile(path) }

// Write replaces a file. All users may read it.
func (HostFiles) Write(path string, data []byte, durable bool) error {
	if err := atomicfile.Write(path, data, 0o644, durable); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// Remove removes a file durably, so that the file does not reappear after a power loss.
func (HostFiles) Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = atomicfile.SyncDir(filepath.Dir(path))
	}
	return err
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

// Within runs do in its own goroutine, because do may hang if the disk hangs. It returns when do returns or ctx ends.
// It does not interrupt do, which may still succeed later.
func Within(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.New("the disk does not respond in time; a pending write may still succeed")
	}
}
