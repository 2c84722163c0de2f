// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import _ "embed" // for the default file

//go:generate go test -run TestTheDefaultFileSaysWhatTheStructsDeclare -update

//go:embed quorumd.yaml
var defaultFile string

// Default gives the commented default file: every key with what it means, its kind and its default. Keys that must
// be set are shown with example values; the others are commented out, so that a later default reaches its user.
// The file is generated from sections.go and sections_backup.go; a test keeps the two equal.
func Default() []byte { return []byte(defaultFile) }
