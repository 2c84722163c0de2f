// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// many is a line of the recipe whose source stands for many files, and its destination for their directory.
var many = regexp.MustCompile(`(?m)^( *- \{src: )([^\s,]*\*[^\s,]*)(, dst: \S*/)(,.*\n)`)

// expand writes such a line once for each file, in the order of their names: nfpm does so itself, but not for what rpm
// is to know as documentation. Paths are seen from the root of the checkout.
func expand(recipe string) (string, error) {
	var failed error
	expanded := many.ReplaceAllStringFunc(recipe, func(line string) string {
		part := many.FindStringSubmatch(line)
		files, err := filepath.Glob(part[2])
		if err != nil || len(files) == 0 { // the pattern stands in the recipe, so that a wrong one is the same mistake
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
