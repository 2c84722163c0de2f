// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package autoreboot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/quorumd/quorumd/agent/execshim"
)

const (
	// askTimeout bounds a query of the package manager, which reads its whole database.
	askTimeout = 2 * time.Minute
	maxSaid    = 64 << 10 // bytes of its output
	maxLine    = 120      // characters of a displayed line
)

// Signs are the files and the program that show whether a host needs a reboot, or must not have one.
type Signs struct {
	Child    []string // becomes the program to run, whose disk may hang
	Sentinel string   // the file left by Debian's packages; their names are in a second file with the suffix .pkgs
	Ask      string   // the program that knows on RPM systems; not run if it is not installed
	Veto     string   // directory: any file in it is a veto
}

// Required returns why the machine needs a reboot; "" if it does not.
func (s Signs) Required(ctx context.Context) (string, error) {
	_, err := os.Stat(s.Sentinel)
	switch {
	case err == nil:
		if packages, _ := readLines(s.Sentinel+".pkgs", 4); len(packages) > 0 {
			return "packages require a reboot: " + strings.Join(packages, ", "), nil
		}
		return s.Sentinel + " requires a reboot", nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("cannot check whether a reboot is required: %w", err)
	}
	if _, err := os.Stat(s.Ask); s.Ask == "" || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return s.ask(ctx)
}

// ask trusts the package manager's exit code 1 only if its output also says that a reboot is required: any failure of
// it has the same code.
func (s Signs) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var said limited
	c := execshim.New(ctx, s.Child, s.Ask, "-r")
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "LC_ALL=C"}
	c.Stdout, c.Stderr = &said, &said
	c.WaitDelay = time.Second
	err := c.Run()
	exit, isExit := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return "", nil
	case isExit && exit.ExitCode() == 1 && strings.Contains(said.String(), "Reboot is required"):
		var packages []string
		for line := range strings.Lines(said.String()) {
			if name, is := strings.CutPrefix(strings.TrimSpace(line), "* "); is && len(packages) < 4 {
				packages = append(packages, show(name))
			}
		}
		return strings.TrimSuffix("packages require a reboot: "+strings.Join(packages, ", "), ": "), nil
	}
	return "", fmt.Errorf("cannot check whether a reboot is required: %s -r: %w: %s", s.Ask, err, show(said.String()))
}

// Vetoed returns what prevents a reboot, as "name: first line", or "". A directory that cannot be read is a veto, too,
// as its content is unknown.
func (s Signs) Vetoed() string {
	entries, err := os.ReadDir(s.Veto)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return show(err.Error())
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, "~") {
			lines, _ := readLines(filepath.Join(s.Veto, name), 1) // a veto needs no reason
			return strings.TrimSuffix(show(name)+": "+strings.Join(lines, ""), ": ")
		}
	}
	return ""
}

// readLines returns the first lines of a regular file, safe to display.
func readLines(path string, n int) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []string
	for scan := bufio.NewScanner(io.LimitReader(f, maxSaid)); scan.Scan() && len(lines) < n; {
		if line := show(scan.Text()); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// show returns one short printable line.
func show(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(strings.TrimSpace(text), "?"))
	if runes := []rune(text); len(runes) > maxLine {
		text = string(runes[:maxLine]) + "…"
	}
	return text
}

// limited keeps the beginning of what is written to it.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxSaid - l.Len(); room > 0 {
		l.Builder.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
