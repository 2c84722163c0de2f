// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// The bounds of a pause, and the default.
const (
	MaxPause     = 7 * 24 * time.Hour
	DefaultPause = 4 * time.Hour
)

// MaxReason is the longest reason, in characters.
const MaxReason = 256

// PauseRequest requests a pause.
type PauseRequest struct {
	Reason string        // required, one line
	For    time.Duration // over 0, at most MaxPause
}

// ReleaseRequest requests that the operation in flight be released.
type ReleaseRequest struct {
	Force  bool   // must be true: only an operator can know that the host is really out
	Reason string // required, one line
}

// The bodies on the wire.
type (
	bootstrapBody struct {
		Confirm string `json:"confirm,omitempty"` // the expected cluster name; if set, it must match
	}
	pauseBody struct {
		Reason string `json:"reason"`
		For    string `json:"for,omitempty"`
	}
	releaseBody struct {
		Force  bool   `json:"force"`
		Reason string `json:"reason"`
	}
)

const (
	bootstrapHint = `send nothing, or {"confirm": "<cluster name>"}`
	pauseHint     = `send {"reason": "<why>", "for": "4h"}`
	releaseHint   = `send {"force": true, "reason": "<why>"}`
	pauseForHint  = "use a duration over 0 and at most 168h, and pause again when it ends"
	reasonHint    = "give a one-line reason; it is recorded in the history"
)

func (b pauseBody) request() (PauseRequest, error) {
	reason, err := oneLine(b.Reason, "cannot pause")
	if err != nil {
		return PauseRequest{}, err
	}
	d, err := lasting(b.For, "cannot pause", bounds{1, MaxPause, DefaultPause, pauseForHint})
	if err != nil {
		return PauseRequest{}, err
	}
	return PauseRequest{Reason: reason, For: d}, nil
}

// bounds are the limits of a duration, and its default.
type bounds struct {
	least, most, otherwise time.Duration
	hint                   string // for a value out of bounds
}

// lasting parses a duration.
func lasting(text, what string, in bounds) (time.Duration, error) {
	if text == "" {
		return in.otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, badRequest("write it as 90m or 4h", "%s: for: %q is not a duration", what, shorten(text))
	}
	if d < in.least || d > in.most {
		return 0, badRequest(in.hint, "%s: for: %s is out of bounds", what, durationfmt.Typed(d))
	}
	return d, nil
}

func (b releaseBody) request() (ReleaseRequest, error) {
	if !b.Force {
		return ReleaseRequest{}, badRequest(
			"make sure that its host is powered off or repaired, then: quorumctl operation release --force --reason "+
				"'<why>'",
			"cannot release the operation: the request is without force")
	}
	reason, err := oneLine(b.Reason, "cannot release the operation")
	if err != nil {
		return ReleaseRequest{}, err
	}
	return ReleaseRequest{Force: true, Reason: reason}, nil
}

// oneLine checks a text that is shown on terminals and written into records: it must not be empty, must be short, and
// must contain no control characters.
func oneLine(text, what string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", badRequest(reasonHint, "%s: the reason is missing", what)
	}
	if n := utf8.RuneCountInString(text); n > MaxReason {
		return "", badRequest(reasonHint, "%s: the reason has %d characters, at most %d are kept", what, n, MaxReason)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", badRequest(reasonHint, "%s: the reason holds line breaks or control characters", what)
	}
	return text, nil
}

// decode strictly reads the one JSON value of a body. An empty body is the zero value.
func decode(body io.Reader, into any, hint string) error {
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if errors.Is(err, io.EOF) { // Decode returns it unwrapped, and only for an empty body
		return nil
	}
	if err == nil {
		if _, err = dec.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); !tooLarge {
			err = errors.New("there is more after the JSON value")
		}
	}
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Error{
			Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge, Hint: hint,
			Message: fmt.Sprintf("cannot read the request: its body is over %d bytes", big.Limit),
		}
	}
	return badRequest(hint, "cannot read the request: %s", jsonCause(err))
}

// jsonCause returns what is wrong with a body, without Go's type names.
func jsonCause(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return fmt.Sprintf("it is a JSON %s, not an object", e.Value)
		}
		return fmt.Sprintf("%s: a JSON %s is of the wrong type", shorten(e.Field), e.Value)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("it is not JSON at byte %d: %s", e.Offset, e.Error())
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "the JSON ends too early"
	}
	return shorten(strings.TrimPrefix(err.Error(), "json: "))
}

// shorten keeps an answer from repeating a caller's megabyte.
func shorten(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
