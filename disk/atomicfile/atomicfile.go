// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces files atomically: a reader sees either the old content or the new one.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Write replaces a file. The umask does not apply to mode. If durable is set, the file and its name are on the disk
// when Write returns; otherwise, a power loss may damage the file.
func Write(path string, data []byte, mode os.FileMode, durable bool) error {
	temp, err := stage(path, data, mode, durable)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if durable {
		return SyncDir(filepath.Dir(path))
	}
	return nil
}

// Stage writes a temporary file in the directory of path, for a link or a rename to path, and returns its name. Its
// content is on the disk. The umask does not apply to mode.
func Stage(path string, data []byte, mode os.FileMode) (temp string, err error) {
	return stage(path, data, mode, true)
}

func stage(path string, data []byte, mode os.FileMode, durable bool) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode))
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// SyncDir makes the names in a directory durable. If another user has put a FIFO at the path, it returns an error
// instead of blocking.
func SyncDir(path string) error {
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
