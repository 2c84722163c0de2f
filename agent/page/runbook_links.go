// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package page

import "strings"

// runbook returns the path of a code's runbook, or "".
func (a About) runbook(code string) string { return a.path(a.ByCode[code]) }

// path returns the path of the runbook with that name, or "" if there is none.
func (a About) path(name string) string {
	if a.section(name) == "" {
		return ""
	}
	return "runbooks/" + name
}

// section returns the text of the runbook with that name, or "" if there is none.
func (a About) section(name string) string {
	_, text, found := strings.Cut(a.Runbooks, "\n## "+name+"\n")
	if name == "" || !found {
		return ""
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return "## " + name + "\n" + strings.TrimRight(text, "\n") + "\n"
}
