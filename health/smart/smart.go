// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package smart asks drives for their SMART data, and publishes the answers in a file.
//
// Asking requires capabilities that the agent does not have, and a drive may not answer. So a separate unit runs [Main]
// periodically as root with two capabilities. It runs smartctl, drive by drive, and writes down what package health
// needs. The agent reads that file with [Read], so it asks no drive and waits for none.
//
// The output of smartctl is bounded in bytes and time, and what it does not report is unknown, never zero. A smartctl
// that hangs with its drive holds a lock, so no second one is started for that drive.
package smart

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd/rootfile"
)

const (
	// Dir is the directory of the unit; only root writes there.
	Dir = "/run/quorumd-smart"
	// File is the file with the answers.
	File = "drives.json"

	fileLimit  = 256 << 10
	mostDrives = 64
	mostErrors = 4
	longest    = 200 // characters of a text
	// stale is the age beyond which an answer is too old. At that age, three reports are missing, and a fourth is due.
	stale = 2 * time.Hour
)

// answers is the content of the file.
type answers struct {
	// At is when they were collected, on CLOCK_MONOTONIC.
	At     time.Duration  `json:"at"`
	Absent string         `json:"absent,omitempty"`
	Drives []health.Drive `json:"drives,omitempty"`
}

// Read returns the last report. now is the time on CLOCK_MONOTONIC.
func Read(files rootfile.Tree, path string, now time.Duration) health.Several[health.Drive] {
	absent := func(why string) health.Several[health.Drive] { return health.Several[health.Drive]{Absent: why} }
	data, err := files.Read(path, fileLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return absent("no drive report yet; see 'systemctl status quorumd-smart.timer'")
	}
	if err != nil {
		return absent(err.Error())
	}
	a, err := parseAnswers(data)
	switch {
	case err != nil:
		return absent("cannot read " + path + ": " + err.Error())
	case now-a.At > stale || a.At > now:
		return absent("the drive report is stale; see 'systemctl status quorumd-smart.service'")
	case a.Absent != "":
		return absent(a.Absent)
	}
	return reported(a.Drives)
}

// reported returns the drives, unless none of them has reported anything.
func reported(drives []health.Drive) health.Several[health.Drive] {
	for _, d := range drives {
		if d.Absent == "" {
			return health.Several[health.Drive]{Known: true, All: drives}
		}
	}
	if len(drives) == 0 {
		return health.Several[health.Drive]{
			Absent: "no NVMe, SCSI or SATA drive found",
		}
	}
	return health.Several[health.Drive]{Absent: drives[0].Name + ": " + drives[0].Absent}
}

func parseAnswers(data []byte) (answers, error) {
	var a answers
	if err := json.Unmarshal(data, &a); err != nil {
		return a, errors.New("unexpected format")
	}
	if len(a.Drives) > mostDrives {
		return a, fmt.Errorf("it has more than %d drives", mostDrives)
	}
	for i := range a.Drives {
		if a.Drives[i].Name == "" || len(a.Drives[i].Errors) > mostErrors {
			return a, errors.New("it has an invalid drive")
		}
		tidy(&a.Drives[i])
	}
	return a, nil
}

// Monotonic returns the current time on CLOCK_MONOTONIC.
func Monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0 // it cannot fail on Linux
	}
	return time.Duration(now.Nano())
}
