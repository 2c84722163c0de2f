// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package smallfile reads files that the configuration names, and that may contain secrets. It reads only regular files
// of a limited size, and never blocks on a FIFO.
package smallfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// maxPassword limits a password file, in bytes.
const maxPassword = 4 << 10

// Read reads a file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) { return read(path, limit, 0) }

// ReadSecret reads a file of at most limit bytes. Only its owner may have access.
func ReadSecret(path string, limit int64) ([]byte, error) { return read(path, limit, 0o077) }

// ReadPassword reads a file that contains only a password, on one line. Only its owner may have access.
func ReadPassword(path string) (string, error) {
	data, err := ReadSecret(path, maxPassword)
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" || strings.ContainsAny(text, "\r\n\x00") {
		return "", errors.New("it must contain the password on one line, and nothing else")
	}
	return text, nil
}

// read reads a file. It refuses a file whose mode has any of the forbidden bits.
func read(path string, limit int64, forbidden os.FileMode) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Mode()&forbidden != 0:
		return nil, fmt.Errorf("its mode is %04o, so other users can read or write it: chmod 0400 %s",
			info.Mode().Perm(), path)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("it has more than %d bytes", limit)
	}
	return data, nil
}
