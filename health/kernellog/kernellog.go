// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package kernellog counts the errors of block devices and the hung tasks in the kernel log, and publishes the counts
// in a file.
//
// Reading the log requires a capability that the agent does not have, and most of the log does not concern the agent.
// So a separate unit runs [Main] periodically as root with only that capability. It counts the kernel's own lines that
// match a known error of a device or a hung task, and writes names and numbers, but no text. The agent reads that file
// with [Read]; package health then selects the devices below etcd's data.
//
// Reading is bounded in bytes, lines and time. Each line is counted once, by its number in the log. Lines that were
// overwritten before they were read are reported, and an unreadable log does not count as an empty one.
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
	// Dir is the directory of the unit; only root writes there.
	Dir = "/run/quorumd-kernel-log"
	// File is the file with the counts.
	File = "errors.json"

	fileLimit   = 64 << 10
	mostDevices = 128
	// stale is the age beyond which the counts are too old. At that age, four reports are missing.
	stale = 10 * time.Minute
)

// summary is the content of the file.
type summary struct {
	// At is when the log was last read, on CLOCK_MONOTONIC.
	At     time.Duration `json:"at"`
	Absent string        `json:"absent,omitempty"`
	// Next is the number of the first unread line.
	Next    uint64                `json:"next"`
	Devices []health.LoggedErrors `json:"devices,omitempty"`
	// Hung is the number of hung tasks in the log.
	Hung uint64 `json:"hung,omitempty"`
}

// Read returns the last report, on devices and on hung tasks. now is the time on CLOCK_MONOTONIC.
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
	if s.At <= 0 { // an empty JSON object does not mean that there were no errors
		return summary{}, errors.New("unexpected format")
	}
	return s, nil
}
