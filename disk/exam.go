// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"context"
	"io"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// exam writes to LaneWAL alone, one write after the other, until stdin ends; then it takes its files away. It waits for
// the write that is under way however long that takes: the parent has less patience.
func (p *prober) exam(ctx context.Context, cancel context.CancelFunc, stdin io.Reader) int {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for ctx.Err() == nil {
			p.canary.arm()
			err := p.wal.act()
			p.canary.disarm()
			if err != nil {
				nap(ctx, longestNap)
			}
		}
	}()
	_, _ = io.Copy(io.Discard, stdin)
	cancel()
	<-ended
	if err := p.place.leave(); err != nil {
		return exitSoftware
	}
	return 0
}

// leave removes the files of the probe and its directory. What is not there is no error, nor a directory above it.
func (p *place) leave() error {
	for _, name := range []string{walNextName, walName, lockName} {
		path := filepath.Join(p.dir, name)
		if err := uninterrupted(func() error { return unix.Unlink(path) }); !gone(err) {
			return err
		}
	}
	if err := uninterrupted(func() error { return unix.Rmdir(p.dir) }); !gone(err) {
		return err
	}
	return nil
}

func gone(err error) bool { return err == nil || err == unix.ENOENT || err == unix.ENOTDIR }
