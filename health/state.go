// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
)

// State is the health state of one check or of the machine. The zero value is Unknown.
type State uint8

// The states, in the order from before the first join to the failure of the machine. [State.WorseThan] defines which
// state is worse.
const (
	Unknown    State = iota // no recent data: neither healthy nor failed
	Qualifying              // in its qualifying run before a join
	OK                      // fit
	Warm                    // usable, but degraded
	Slow                    // harms the cluster
	Stalled                 // not responding right now
	Failed                  // broken
)

// stateNames are in the order of the constants.
func stateNames() []string {
	return []string{"UNKNOWN", "QUALIFYING", "OK", "WARM", "SLOW", "STALLED", "FAILED"}
}

// String returns the name in upper case, as in output, labels and records.
func (s State) String() string {
	if names := stateNames(); int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("STATE(%d)", uint8(s))
}

// ParseState is the inverse of String.
func ParseState(name string) (State, error) {
	if i := slices.Index(stateNames(), name); i >= 0 {
		return State(i), nil
	}
	return Unknown, fmt.Errorf("cannot read health state %q: want one of %s", name, strings.Join(stateNames(), ", "))
}

// MarshalText writes the name; an error means that the value is none of the constants.
func (s State) MarshalText() ([]byte, error) {
	if int(s) >= len(stateNames()) {
		return nil, fmt.Errorf("cannot write health state %d: it has no name", uint8(s))
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads the name. Any other text, such as a state of a newer version, is Unknown: a client must still be
// able to show the rest of the document.
func (s *State) UnmarshalText(text []byte) error {
	*s, _ = ParseState(string(text)) // on an error, ParseState returns Unknown
	return nil
}

// weight orders the states for combining: bad states outweigh an unknown state, and an unknown state outweighs a good
// one. QUALIFYING outweighs WARM because it allows less.
func (s State) weight() int {
	return slices.Index([]State{OK, Unknown, Warm, Qualifying, Slow, Stalled, Failed}, s)
}

// WorseThan reports whether s outweighs other. From the lightest: OK, UNKNOWN, WARM, QUALIFYING, SLOW, STALLED, FAILED.
func (s State) WorseThan(other State) bool { return s.weight() > other.weight() }
