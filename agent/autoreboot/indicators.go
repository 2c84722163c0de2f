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
	// queryTimeout limits a query to the package manager, which reads its whole database.
	queryTimeout = 2 * time.Minute
	maxOutput    = 64 << 10 // maximum bytes of the query's output
	maxLine      = 120      // maximum characters of a displayed line
)

// Indicators are the files and the program that show whether a host requires a reboot, or must not be rebooted.
type Indicators struct {
	Child    []string // command line of a child process that runs the program, because the program's disk may hang
	Sentinel string   // file that Debian's packages create; a second file with the suffix .pkgs lists them
	Query    string   // program on RPM systems that reports whether a reboot is required; may be missing
	Veto     string   // directory in which each file is a veto, unless its name begins with "." or ends with "~"
}

// Required returns why the machine requires a reboot, or "".
func (s Indicators) Required(ctx context.Context) (string, error) {
	_, err := os.Stat(s.Sentinel)
	switch {
	case err == nil:
		if packages, _ := readLines(s.Sentinel+".pkgs", 4); len(packages) > 0 {
			return "packages require a reboot: " + strings.Join(packages, ", "), nil
		}
		return s.Sentinel + " exists, so a reboot is required", nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("cannot check whether a reboot is required: %w", err)
	}
	if _, err := os.Stat(s.Query); s.Query == "" || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return s.query(ctx)
}

// query runs the package manager's program. Exit code 1 means either that a reboot is required or that the program
// failed, so the output must confirm a required reboot.
func (s Indicators) query(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var output limited
	c := execshim.New(ctx, s.Child, s.Query, "-r")
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "LC_ALL=C"}
	c.Stdout, c.Stderr = &output, &output
	c.WaitDelay = time.Second
	err := c.Run()
	exit, isExit := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return "", nil
	case isExit && exit.ExitCode() == 1 && strings.Contains(output.String(), "Reboot is required"):
		var packages []string
		for line := range strings.Lines(output.String()) {
			if name, is := strings.CutPrefix(strings.TrimSpace(line), "* "); is && len(packages) < 4 {
				packages = append(packages, printable(name))
			}
		}
		return strings.TrimSuffix("packages require a reboot: "+strings.Join(packages, ", "), ": "), nil
	}
	return "", fmt.Errorf("cannot check whether a reboot is required: %s -r: %w: %s", s.Query, err,
		printable(output.String()))
}

// Vetoed returns the first veto, as "name: first line", or "". A directory that exists but cannot be read is a veto,
// too, because it may contain one.
func (s Indicators) Vetoed() string {
	entries, err := os.ReadDir(s.Veto)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return printable(err.Error())
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, "~") {
			lines, _ := readLines(filepath.Join(s.Veto, name), 1) // the file may be empty
			return strings.TrimSuffix(printable(name)+": "+strings.Join(lines, ""), ": ")
		}
	}
	return ""
}

// readLines returns the first n lines of a regular file in printable form. It skips empty lines.
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
	for scan := bufio.NewScanner(io.LimitReader(f, maxOutput)); scan.Scan() && len(lines) < n; {
		if line := printable(scan.Text()); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// printable returns a text as one line of printable characters, truncated after maxLine of them.
func printable(text string) string {
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

// limited keeps the first maxOutput bytes that are written to it.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.Len(); room > 0 {
		l.Builder.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
