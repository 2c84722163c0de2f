// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// patternLine matches a line of the recipe whose source is a pattern and whose destination is a directory.
var patternLine = regexp.MustCompile(`(?m)^( *- \{src: )([^\s,]*\*[^\s,]*)(, dst: \S*/)(,.*\n)`)

// expand replaces each line that patternLine matches with one line per file, sorted by name. nfpm expands patterns
// itself, but not for files that are marked as documentation in an rpm. Paths are relative to the root of the checkout.
func expand(recipe string) (string, error) {
	var failed error
	expanded := patternLine.ReplaceAllStringFunc(recipe, func(line string) string {
		part := patternLine.FindStringSubmatch(line)
		files, err := filepath.Glob(part[2])
		if err != nil || len(files) == 0 { // a pattern that matches nothing is also a mistake
			failed = fmt.Errorf("cannot package %s: no file matches", part[2])
			return line
		}
		var b strings.Builder
		for _, file := range files {
			b.WriteString(part[1] + file + part[3] + filepath.Base(file) + part[4])
		}
		return b.String()
	})
	return expanded, failed
}
