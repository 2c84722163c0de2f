// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheus holds the alert rules, a test for each alert, and the runbooks, which quorumd serves on its
// metrics port.
package prometheus

import _ "embed" // for the runbooks

//go:embed runbooks.md
var runbooks string

// Runbooks returns the runbooks as Markdown.
func Runbooks() string { return runbooks }
