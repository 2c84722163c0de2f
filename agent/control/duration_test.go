// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

func TestADurationIsAStringInJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		`{"reason":"x","for":"1h30m0s"}`: 90 * time.Minute,
		`{"reason":"x"}`:                 0,
	} {
		var req PauseRequest
		if err := json.Unmarshal([]byte(text), &req); err != nil || time.Duration(req.For) != want {
			t.Errorf("%s: got %s, %v", text, req.For, err)
		}
		if got, err := json.Marshal(req); err != nil || string(got) != text {
			t.Errorf("got %s, %v, want %s", got, err, text)
		}
	}
}

func TestADurationErrorHasTheText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]DurationError{
		`{"for":"0s"}`:     {Text: "0s", Zero: true},
		`{"for":"2 days"}`: {Text: "2 days"},
	} {
		err := json.Unmarshal([]byte(text), &PauseRequest{})
		if e, ok := errors.AsType[*DurationError](err); !ok || *e != want {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
