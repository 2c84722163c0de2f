// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Refusal is the reason why an operator's request is rejected.
type Refusal struct {
	Kind RefusalKind
	Code ReasonCode // empty if no reason applies
	Text string     // the cause, as it follows "cannot …: "
	Hint string     // what to do
}

// RefusalKind classifies a refusal.
type RefusalKind uint8

// The kinds of refusals.
const (
	Conflicts RefusalKind = iota // the host or the cluster is not in the expected state
	NotNow                       // the request may succeed later
	Wrong                        // the request can never be fulfilled
	NoSuch                       // the name matches nothing, or is ambiguous
)

func conflicts(code ReasonCode, text, hint string) *Refusal {
	return &Refusal{Conflicts, code, text, hint}
}
