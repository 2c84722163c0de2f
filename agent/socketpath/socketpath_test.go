// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package socketpath

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// TestSocketMayHaveAPathOfAnyLength tests paths near the kernel's limit and far above it.
func TestSocketMayHaveAPathOfAnyLength(t *testing.T) {
	t.Parallel()
	for _, length := range []int{106, 107, 108, 150, 1000} {
		path := tempdir.New(t)
		for len(path) < length {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			path += "/" + strings.Repeat("x", max(1, min(50, length-len(path)-1)))
		}
		var listener net.Listener
		err := With(path, func(address string) (err error) {
			listener, err = net.Listen("unix", address)
			return err
		})
		if err != nil {
			t.Fatalf("%d bytes: %v", len(path), err)
		}
		t.Cleanup(func() { listener.Close() })
		err = With(path, func(address string) error {
			conn, err := net.Dial("unix", address)
			if err == nil {
				err = conn.Close()
			}
			return err
		})
		if err != nil {
			t.Errorf("%d bytes: %v", len(path), err)
		}
	}
}

func TestSocketInAnUnlistableDirectoryIsReached(t *testing.T) {
	t.Parallel()
	dir := tempdir.New(t) + "/" + strings.Repeat("x", 120)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if err := With(dir+"/s", func(address string) error {
		listener, err := net.Listen("unix", address)
		if err == nil {
			err = listener.Close()
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestTooLongNameIsRefused(t *testing.T) {
	t.Parallel()
	err := With("/run/"+strings.Repeat("x", 108), func(string) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "108 bytes; the maximum is 80") {
		t.Error(err)
	}
}
