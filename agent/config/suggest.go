// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"slices"
	"strings"
)

// noSettings returns the message for a file without keys.
func noSettings() string {
	var required []string
	for _, k := range allKeys(reflect.TypeFor[Config](), "") {
		if k.tag("required") != "" {
			required = append(required, k.path)
		}
	}
	return "no settings in this file; set at least " + strings.Join(required, ", ")
}

// suggest returns advice about an unknown key of a section: the key that was probably meant, a key of that name in
// another section, or the valid keys.
func suggest(name, section string) string {
	keys := allKeys(reflect.TypeFor[Config](), "")
	var names []string
	for _, k := range keys {
		if k.path == join(section, k.name) {
			names = append(names, k.name)
		}
	}
	best, distance := nearest(name, names)
	if distance > 0 { // an exact match in another section is a better guess than a near match in this one
		for _, k := range slices.Backward(keys) {
			if wanted := letters(name); wanted == letters(k.name) || wanted == letters(k.path) {
				best = k.name + " " + place(strings.TrimSuffix(strings.TrimSuffix(k.path, k.name), "."))
			}
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "the keys " + place(section) + " are " + strings.Join(names, ", ")
}

// Nearest returns the most similar of the names; "" if none is similar enough.
func Nearest(name string, names []string) string {
	best, _ := nearest(name, names)
	return best
}

// nearest returns the name with the fewest typing errors, and their number; "" if there are too many.
func nearest(name string, names []string) (best string, distance int) {
	distance = maxTypos(name) + 1
	for _, candidate := range names {
		if d := typos(name, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	return best, distance
}

// place returns where the keys of a section belong.
func place(section string) string {
	if section == "" {
		return "at the top level"
	}
	return "in section " + section
}

// letters normalizes spelling: lock_ttl, lock-ttl, lockTtl and lockTTL become equal.
func letters(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(shorten(name, 64)))
}

// maxTypos returns how many typing errors may separate a name from the intended one.
func maxTypos(name string) int {
	if len(name) < 5 {
		return 1
	}
	return 2
}

// typos counts the typing errors between two names: letters missing, added, replaced or swapped with their neighbour
// (optimal string alignment). A name that begins with the other, as certFile begins with cert, counts as one error if
// the shorter one has at least four letters.
func typos(a, b string) int {
	a, b = letters(a), letters(b)
	if a == b {
		return 0
	}
	if min(len(a), len(b)) >= 4 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
		return 1
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j]+change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
