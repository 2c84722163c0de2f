// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package kernellog counts what the kernel's log holds against block devices, and the tasks that it says hang, and
// hands the counts over in a file.
//
// The log may be read with a right that the agent does not have, and says much that is none of its business. So a unit
// of its own runs [Main] every now and then as root with that one capability. It counts the lines of the kernel itself
// that name a device in an error that is known here, and writes down names and numbers, no text. The agent reads that
// file with [Read], and whoever judges by it picks the devices below etcd's data.
//
// What is read is bounded in bytes, lines and time. Each line is counted once: the log numbers them. Lines that were
// overwritten before anybody read them are told, and a log that cannot be read is not known to be empty.
package kernellog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd/rootfile"
)

const (
	// Dir is the directory of the unit; root alone writes there.
	Dir = "/run/quorumd-kernel-log"
	// File is what is handed over in it.
	File = "errors.json"

	fileLimit   = 64 << 10
	mostDevices = 128
	// stale is when the counts say nothing of now: after four that did not come.
	stale = 10 * time.Minute
)

// summary is the file.
type summary struct {
	// At is when the log was read to its end, on CLOCK_MONOTONIC.
	At     time.Duration `json:"at"`
	Absent string        `json:"absent,omitempty"`
	// Next is the number of the first line that has not been read.
	Next    uint64                `json:"next"`
	Devices []health.LoggedErrors `json:"devices,omitempty"`
	// Hung is of how many tasks the log has said that they hang.
	Hung uint64 `json:"hung,omitempty"`
}

// Read returns what was handed over last, of devices and of tasks that hang. Now is the moment on CLOCK_MONOTONIC.
func Read(files rootfile.Tree, path string, now time.Duration) (health.Several[health.LoggedErrors], health.Figure) {
	absent := func(why string) (health.Several[health.LoggedErrors], health.Figure) {
		return health.Several[health.LoggedErrors]{Absent: why}, health.Figure{Absent: why}
	}
	data, err := files.Read(path, fileLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return absent("no kernel log report yet; see 'systemctl status quorumd-kernel-log.timer'")
	}
	if err != nil {
		return absent(err.Error())
	}
	s, err := parse(data)
	switch {
	case err != nil:
		return absent("cannot read " + path + ": " + err.Error())
	case now-s.At > stale || s.At > now:
		return absent("the kernel log report is stale; see " +
			"'systemctl status quorumd-kernel-log.service'")
	case s.Absent != "":
		return absent(s.Absent)
	}
	return health.Several[health.LoggedErrors]{Known: true, All: s.Devices},
		health.Figure{Known: true, Value: float64(s.Hung)}
}

func parse(data []byte) (summary, error) {
	var s summary
	if err := json.Unmarshal(data, &s); err != nil {
		return summary{}, errors.New("unexpected format")
	}
	if len(s.Devices) > mostDevices {
		return summary{}, fmt.Errorf("it has more than %d devices", mostDevices)
	}
	if s.At <= 0 { // it says nothing, which is not that there was nothing
		return summary{}, errors.New("unexpected format")
	}
	return s, nil
}
