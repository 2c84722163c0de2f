// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package socketpath lets a unix socket have a path of any length. Its address in the kernel has at most 107 bytes.
package socketpath

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MaxName is how long the name of a socket may be in its directory, in bytes: an address also has room for a
// descriptor.
const MaxName = 80

// With calls a function with an address of the socket: its path or, if that is too long, its name below a descriptor of
// its directory. Such an address is valid until the function returns.
func With(path string, do func(address string) error) error {
	if len(path) < len(unix.RawSockaddrUnix{}.Path) { // which ends with a NUL
		return do(path)
	}
	dir, name := filepath.Split(path)
	if len(name) > MaxName {
		return fmt.Errorf("the socket's name has %d bytes, at most %d are possible: choose a shorter one", len(name),
			MaxName)
	}
	file, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0) // O_PATH needs no permission to list it
	if err != nil {
		return err
	}
	defer file.Close()
	return do(fmt.Sprintf("/proc/self/fd/%d/%s", file.Fd(), name))
}
