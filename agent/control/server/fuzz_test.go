// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

// FuzzRequest sends raw requests, and raw bodies for every route, as root. None may cause an internal error, and every
// refusal must have an error document.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"GET /v1/status HTTP/1.1\r\nHost: quorumd\r\n\r\n",
		"GET /v1/history?limit=5 HTTP/1.1\r\nHost: localhost:80\r\n\r\n",
		"PUT /v1/pause HTTP/1.1\r\nHost: quorumd\r\nContent-Length: 33\r\n\r\n{\"reason\":\"x\",\"for\":\"4h\"}       ",
		"OPTIONS * HTTP/1.1\r\nHost: quorumd\r\n\r\n",
		"CONNECT a:1 HTTP/1.1\r\nHost: quorumd\r\n\r\n",
		`{"reason":"disk swap","for":"90m"}`, `{"force":true,"reason":"gone"}`, `{"confirm":"prod"}`,
		`{"work":"maintenance","reason":"x","for":"2h","keepRunning":true}`,
		`{"work":"reboot","reason":"x","external":true}`,
		`{"work":"restart","reason":"x","hosts":["n1","n2"],"version":"3.6.12"}`,
		`{"work":"command","command":"upgrade","reason":"x"}`, `{"state":"paused"}`,
		`{"for":"9999999h"}`, `{"reason":"\u001b[2J"}`, `[[[[`, `{"reason":"x"}{}`, `null`, "", "\xff\xfe",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := New(Options{Backend: &fake{}})
		if r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data))); err == nil {
			checkResponse(t, s, r)
		}
		for _, rt := range s.table {
			r := httptest.NewRequest(rt.method, "http://quorumd"+rt.path, bytes.NewReader(data))
			checkResponse(t, s, r)
		}
	})
}

func checkResponse(t *testing.T, s *Server, r *http.Request) {
	t.Helper()
	w := httptest.NewRecorder()
	s.serve(w, r.WithContext(context.WithValue(r.Context(), peerKey{}, peer{})))
	body := w.Body.String()
	switch {
	case w.Code == http.StatusOK || w.Code == http.StatusAccepted:
		if !json.Valid([]byte(body)) {
			t.Errorf("not a document: %q", body)
		}
	case w.Code >= 400 && w.Code < 500:
		errorIn(t, body)
	default:
		t.Errorf("%s %s: got %d %s", r.Method, r.URL, w.Code, body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
}
