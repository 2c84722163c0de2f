// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writeGzip writes a gzip file whose header contains neither a name nor a date.
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

// page returns the Markdown of a manual page. The page about the configuration includes the default configuration, so
// that it names every key.
func page(source string) (io.Reader, error) {
	text, err := os.ReadFile(source)
	if err != nil || filepath.Base(source) != "quorumd.yaml.5.md" {
		return bytes.NewReader(text), err
	}
	keys, err := os.ReadFile("agent/config/quorumd.yaml")
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(text)
	for line := range strings.Lines(string(keys)) {
		b.WriteString("    " + line)
	}
	b.WriteString("\n# SEE ALSO\n\n**quorumd**(8), **quorumctl**(1)\n")
	return b, nil
}

// changelog stages a changelog in nfpm's format that only states where the changes are listed, and for quorumd also its
// own changelog.
func (j job) changelog(path string) error {
	if j.product.own {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := writeGzip(filepath.Join(j.stage, "changelog.gz"), text); err != nil {
			return err
		}
	}
	entry := fmt.Sprintf(`- semver: %q
  date: %s
  packager: The quorumd Authors <quorumd@users.noreply.github.com>
  deb: {urgency: medium, distributions: [unstable]}
  changes:
    - note: %q
`, j.version, j.date.Format(time.RFC3339), j.product.news)
	return os.WriteFile(filepath.Join(j.stage, "changelog.yaml"), []byte(entry), 0o644)
}
