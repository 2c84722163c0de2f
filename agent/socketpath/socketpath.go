// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package socketpath allows a unix socket to have a path of any length. Its address in the kernel has at most 107
// bytes.
package socketpath

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MaxName bounds the name of a socket in its directory, in bytes: an address also needs space for a descriptor.
const MaxName = 80

// With calls a function with an address of the socket: its path or, if that is too long, its name below a descriptor of
// its directory. The address is valid until the function returns.
func With(path string, do func(address string) error) error {
	if len(path) < len(unix.RawSockaddrUnix{}.Path) { // the address ends with a NUL
		return do(path)
	}
	dir, name := filepath.Split(path)
	if len(name) > MaxName {
		return fmt.Errorf("the socket path has %d bytes, the maximum is %d: choose a shorter one", len(name),
			MaxName)
	}
	file, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0) // O_PATH needs no permission to list it
	if err != nil {
		return err
	}
	defer file.Close()
	return do(fmt.Sprintf("/proc/self/fd/%d/%s", file.Fd(), name))
}
