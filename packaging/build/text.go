// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writeGzip writes a file that holds neither a name nor a date.
func writeGzip(path string, data []byte) error {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// changelog turns the newest part of the changelog into nfpm's form.
func (j job) changelog(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "- semver: %q\n  date: %s\n  packager: The quorumd Authors <quorumd@users.noreply.github.com>\n", j.version, j.date.Format(time.RFC3339))
	fmt.Fprint(&b, "  deb: {urgency: medium, distributions: [unstable]}\n  changes:\n")
	notes := newest(string(text))
	if len(notes) == 0 {
		return fmt.Errorf("cannot read %s: no entry in its newest part", path)
	}
	for _, note := range notes {
		fmt.Fprintf(&b, "    - note: %q\n", note)
	}
	return os.WriteFile(filepath.Join(j.stage, "changelog.yaml"), []byte(b.String()), 0o644)
}

// newest gives the entries of a changelog's first part that has any, each as one line.
func newest(text string) []string {
	var notes []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "## ") && len(notes) > 0:
			return notes
		case strings.HasPrefix(line, "- "):
			notes = append(notes, line[2:])
		case strings.HasPrefix(line, "  ") && len(notes) > 0:
			notes[len(notes)-1] += " " + strings.TrimSpace(line)
		}
	}
	return notes
}
