// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"time"
)

// Duration is an optional duration of a request. In JSON it is a string in Go's format, such as "1h30m0s". A request
// omits a zero duration, and the server replaces it with the default.
type Duration time.Duration

// String returns the duration in Go's format.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns the duration in Go's format.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses a duration in Go's format. An empty text is a zero duration. The error is a DurationError if the
// text is not a duration, or is an explicit "0s": a caller who sends that does not mean the default.
func (d *Duration) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*d = 0
		return nil
	}
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed == 0 {
		return &DurationError{Text: string(text), Zero: err == nil}
	}
	*d = Duration(parsed)
	return nil
}

// DurationError reports a text that is not a Duration.
type DurationError struct {
	Text string
	Zero bool // the text is valid, but the duration is zero
}

// Error returns the reason.
func (e *DurationError) Error() string {
	if e.Zero {
		return "a duration of 0 is not possible"
	}
	return fmt.Sprintf("%q is not a duration", e.Text)
}
