// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package socketpath allows a unix socket to have a path of any length, although its address in the kernel is limited
// to 107 bytes.
package socketpath

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MaxName limits, in bytes, the base name of a socket whose path is too long for an address: the address that replaces
// it also contains /proc/self/fd and a number.
const MaxName = 80

// With calls do with an address for the socket: its path or, if that is too long, a path through a descriptor of its
// directory. The address is valid until do returns.
func With(path string, do func(address string) error) error {
	if len(path) < len(unix.RawSockaddrUnix{}.Path) { // the address ends with a NUL
		return do(path)
	}
	dir, name := filepath.Split(path)
	if len(name) > MaxName {
		return fmt.Errorf("the file name of the socket has %d bytes; the maximum is %d: choose a shorter one",
			len(name), MaxName)
	}
	file, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0) // O_PATH requires no read permission
	if err != nil {
		return err
	}
	defer file.Close()
	return do(fmt.Sprintf("/proc/self/fd/%d/%s", file.Fd(), name))
}
