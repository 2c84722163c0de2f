// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import _ "embed" // for the default file

//go:generate go test -run TestDefaultFileMatchesTheStructs -update

//go:embed quorumd.yaml
var defaultFile string

// Default returns the default file with comments: every key with its meaning, type and default. Required keys have
// example values. The others are commented out, so that a changed default of a later version takes effect. The file is
// generated from the files keys*.go; a test keeps them in sync.
func Default() []byte { return []byte(defaultFile) }
