// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/control/internal/errtext"
	"github.com/quorumd/quorumd/agent/durationfmt"
)

// bodyText describes the body of one route: the texts of its errors, and the limits of its duration, if it has one.
type bodyText struct {
	cannot   string // beginning of the error message
	hint     string // text that shows a valid body
	duration bounds
}

// bounds are the limits of a duration, and its default.
type bounds struct {
	least, most, otherwise time.Duration
	hint                   string // hint in the error for a duration out of bounds
}

var (
	bootstrapText = bodyText{cannot: "cannot bootstrap", hint: `send nothing, or {"confirm": "<cluster name>"}`}
	pauseText     = bodyText{
		"cannot pause", `send {"reason": "<why>", "for": "4h"}`,
		bounds{
			1, control.MaxPause, control.DefaultPause,
			"use a duration of more than 0 and at most 168h; for longer, pause again when it ends",
		},
	}
	releaseText = bodyText{cannot: "cannot release the operation", hint: `send {"force": true, "reason": "<why>"}`}
	removalText = bodyText{
		"cannot remove the member", `send {"member": "<name or ID>", "reason": "<why>"}`,
		bounds{
			control.MinRemoval, control.MaxRemoval, control.DefaultRemoval,
			"use a duration from 1s to 1h",
		},
	}
	maintenanceText = bodyText{
		"cannot request maintenance", `send {"work": "maintenance", "reason": "<why>", "for": "4h"}`,
		bounds{
			control.MinMaintenance, control.MaxMaintenance, control.DefaultMaintenance,
			"use a duration from 1m to 168h; if the work takes longer, request more time",
		},
	}
	muteText = bodyText{
		"cannot mute", `send {"code": "<code>", "reason": "<why>", "for": "4h"}`,
		bounds{
			1, control.MaxMute, control.DefaultMute,
			"use a duration of more than 0 and at most 720h; for longer, mute again when it ends",
		},
	}
	rolloutText = bodyText{
		cannot: "cannot start the rollout", hint: `send {"work": "restart", "reason": "<why>"}`,
	}
	resizeText = bodyText{
		cannot: "cannot resize the cluster", hint: `send {"voters": 5, "reason": "<why>"}`,
	}
	retireText = bodyText{
		cannot: "cannot retire the host", hint: `send {"host": "n3", "reason": "<why>"}`,
	}
	transferText = bodyText{
		cannot: "cannot transfer leadership", hint: `send {"host": "<name>", "reason": "<why>"}`,
	}
	rolloutStateText = bodyText{cannot: "cannot change the rollout", hint: `send {"state": "paused"}`}
	snapshotText     = bodyText{
		cannot: "cannot run the snapshot command",
		hint:   `send {"do": "save"}; do is one of save, list, verify, prune, restoreTest`,
	}
)

// read decodes a body and validates it.
func read[T any](body io.Reader, text bodyText, validate func(*T) error) (req T, err error) {
	if err = decode(body, &req, text); err == nil {
		err = validate(&req) // validate may also set defaults
	}
	return req, err
}

// decode strictly reads the one JSON value of a body. An empty body is the zero value.
func decode(body io.Reader, into any, text bodyText) error {
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if errors.Is(err, io.EOF) { // Decode returns io.EOF unwrapped, and only for an empty body
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
		return &control.Error{
			Status: http.StatusRequestEntityTooLarge, Code: control.CodeTooLarge, Hint: text.hint,
			Message: fmt.Sprintf("cannot read the request: its body is over %d bytes", big.Limit),
		}
	}
	if bad, ok := errors.AsType[*control.DurationError](err); ok {
		if bad.Zero {
			return outOfBounds(0, text)
		}
		return badRequest("write a duration such as 90m or 4h", "%s: for: %q is not a duration", text.cannot,
			errtext.Shorten(bad.Text))
	}
	return badRequest(text.hint, "cannot read the request: %s", errtext.JSON(err))
}

// checkDuration refuses a duration out of bounds, and sets an absent one to the default.
func checkDuration(d *control.Duration, text bodyText) error {
	switch asked := time.Duration(*d); {
	case asked == 0:
		*d = control.Duration(text.duration.otherwise)
	case asked < text.duration.least || asked > text.duration.most:
		return outOfBounds(asked, text)
	}
	return nil
}

func outOfBounds(d time.Duration, text bodyText) error {
	return badRequest(text.duration.hint, "%s: for: %s is out of bounds", text.cannot, durationfmt.Parseable(d))
}

func badRequest(hint, format string, args ...any) *control.Error {
	return &control.Error{
		Status: http.StatusBadRequest, Code: control.CodeBadRequest, Message: fmt.Sprintf(format, args...),
		Hint: hint,
	}
}
