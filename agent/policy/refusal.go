// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Refusal is why something is not begun that a person asks for.
type Refusal struct {
	Kind RefusalKind
	Code ReasonCode // empty where none says more than that it conflicts with what is
	Text string     // the cause, as it follows "cannot …: "
	Hint string     // what to do
}

// RefusalKind tells in which way something is refused.
type RefusalKind uint8

// The kinds of refusals.
const (
	Conflicts RefusalKind = iota // the host or the cluster is not in the state that the person expects
	NotNow                       // something is missing that may come: the same may be done later
	Wrong                        // what is asked can never be done so
	NoSuch                       // what is asked for names nothing that there is, or more than one thing
)

func conflicts(code ReasonCode, text, hint string) *Refusal {
	return &Refusal{Conflicts, code, text, hint}
}
