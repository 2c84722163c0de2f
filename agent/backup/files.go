// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// maxIdentities limits a file of identities, in bytes.
const maxIdentities = 64 << 10

// ReadIdentities reads a file of identities as age-keygen writes it. The file must be readable by its owner only.
func ReadIdentities(path string) (Identities, error) {
	text, err := readPrivate(path, maxIdentities)
	if err != nil {
		return nil, err
	}
	return ParseIdentities(bytes.NewReader(text))
}

// readPrivate reads a small file that must be readable by its owner only.
func readPrivate(path string, most int64) ([]byte, error) {
	f, err := openSmall(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("its mode is %04o, so users other than its owner may read or write it: chmod 0400",
			info.Mode().Perm())
	}
	return readSmall(f, most)
}

// openSmall opens a regular file. It does not block on a FIFO.
func openSmall(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is not a regular file"), f.Close())
	}
	return f, nil
}

func readSmall(f *os.File, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return text, err
}
