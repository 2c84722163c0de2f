// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheus holds the alerts for Prometheus, a test for each of them, and the runbooks that they lead to,
// which quorumd serves beside its metrics.
package prometheus

import _ "embed" // for the runbooks

//go:embed runbooks.md
var runbooks string

// Runbooks gives the text of the runbooks, in Markdown.
func Runbooks() string { return runbooks }
