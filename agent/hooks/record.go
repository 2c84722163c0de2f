// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/disk/atomicfile"
)

const (
	maxRecord = 16 << 10 // maximum bytes of a record
	maxText   = 300      // maximum characters of a text from a record or a program
)

// request is the agent's record for the runner.
type request struct {
	ID      string        `json:"id"`
	Work    string        `json:"work"`
	Reason  string        `json:"reason"`
	By      string        `json:"by"`
	Program string        `json:"program,omitempty"`
	Until   time.Duration `json:"until,omitempty"`
}

// WriteRequest records a request in a directory, where a Runner reads it.
func WriteRequest(dir string, run Run) error {
	w := request{ID: run.ID, Work: run.Work, Reason: run.Reason, By: run.By, Program: run.Program, Until: run.Until}
	return write(requestPath(dir, run.When), 0o640, w)
}

// outcome is the runner's record of the state of a run.
type outcome struct {
	ID    string `json:"id"`
	State State  `json:"state"`
	Hook  string `json:"hook,omitempty"`
	Text  string `json:"text,omitempty"`
}

func requestPath(dir, when string) string { return filepath.Join(dir, "hooks-"+when+".json") }
func outcomePath(dir, when string) string { return filepath.Join(dir, when+".json") }
func lockPath(dir, when string) string    { return filepath.Join(dir, when+".lock") }

// write replaces a record atomically. It does not sync, because a reboot clears the directory.
func write(path string, mode os.FileMode, record any) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(data, '\n'), mode, false)
}

// read reads a record that a different user may have written, so it follows no link, never blocks, and limits the size.
func read(path string, record any) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err == nil && len(data) > maxRecord {
		err = fmt.Errorf("it has more than %d bytes", maxRecord)
	}
	if err == nil {
		strict := json.NewDecoder(bytes.NewReader(data))
		strict.DisallowUnknownFields()
		err = strict.Decode(record)
	}
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	return nil
}

// sanitize reduces an untrusted text to one printable line of limited length.
func sanitize(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "…"
	}
	return strings.TrimSpace(text)
}

// lock takes the runner's lock, which is held until the file is closed or the process ends. Child processes do not
// inherit it.
func lock(dir, when string) (*os.File, error) {
	f, err := os.OpenFile(lockPath(dir, when), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	// the agent may run as a different user, and the umask may have removed its permission to read
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return nil, err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// locked reports whether a runner holds the lock, without taking it.
func locked(dir, when string) (bool, error) {
	f, err := os.Open(lockPath(dir, when))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	probe := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &probe); err != nil {
		return false, err
	}
	return probe.Type != unix.F_UNLCK, nil
}
