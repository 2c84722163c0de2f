// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// many matches a line of the recipe with a pattern as source and a directory as destination.
var many = regexp.MustCompile(`(?m)^( *- \{src: )([^\s,]*\*[^\s,]*)(, dst: \S*/)(,.*\n)`)

// expand replaces such a line with one line for each file, sorted by name: nfpm does so itself, but not for the type of
// rpm's documentation. Paths are relative to the root of the checkout.
func expand(recipe string) (string, error) {
	var failed error
	expanded := many.ReplaceAllStringFunc(recipe, func(line string) string {
		part := many.FindStringSubmatch(line)
		files, err := filepath.Glob(part[2])
		if err != nil || len(files) == 0 { // a pattern that matches nothing is also a mistake
			failed = fmt.Errorf("cannot package %s: %d files match", part[2], len(files))
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
