// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import "path/filepath"

const (
	healthName  = "health.json"       // file in the runtime directory
	historyName = "disk-history.json" // file in the state directory
)

// Health returns the health state that an agent saved last; the error is fs.ErrNotExist if there is none.
func (f *State) Health() ([]byte, error) { return f.disk.Read(filepath.Join(f.runtime, healthName)) }

// SaveHealth saves the health state, so that a restarted agent continues with it. Unlike the other methods, it does not
// wait for a write that hangs, because the health state itself reports a hanging disk. Only one goroutine may call it.
func (f *State) SaveHealth(data []byte) error {
	return f.disk.Write(filepath.Join(f.runtime, healthName), data, false)
}

// DiskHistory returns the disk's usual write times that an agent saved last; the error is fs.ErrNotExist if there are
// none.
func (f *State) DiskHistory() ([]byte, error) {
	return f.disk.Read(filepath.Join(f.state, historyName))
}

// SaveDiskHistory saves the disk's usual write times. It may hang if the disk hangs.
func (f *State) SaveDiskHistory(data []byte) error {
	defer f.writes()()
	return f.disk.Write(filepath.Join(f.state, historyName), append(data, '\n'), true)
}
