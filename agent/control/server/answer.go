// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

const (
	// smallAnswer is the size up to which answers are not counted: all connections together hold 8 MiB of them.
	smallAnswer = 64 << 10
	// statusFresh is the longest time that an encoded status is reused. Values such as the age of the loop grow without
	// a new round.
	statusFresh = time.Second
	// retryAfter is the Retry-After of a 503, in seconds.
	retryAfter = 2
)

// encoded is a JSON document. All readers of the same document share its bytes.
type encoded struct{ text []byte }

// encode returns a document on a line of its own. It escapes nothing for HTML, since no web page shows the document.
func encode(doc any) (*encoded, error) {
	if e, ok := doc.(*encoded); ok {
		return e, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil { // a number that is not finite
		return nil, fmt.Errorf("cannot encode the answer: %w", err)
	}
	if b.Len() > control.MaxAnswer {
		return nil, fmt.Errorf("cannot send the answer: %d bytes, the limit is %d", b.Len(), control.MaxAnswer)
	}
	return &encoded{b.Bytes()}, nil
}

// statuses caches the last encoded status.
type statuses struct {
	mu       sync.Mutex
	last     *encoded
	revision uint64
	at       time.Time
}

// newest returns the encoded status. It encodes only if the backend has published a new one or the cached one is too
// old.
func (s *statuses) newest(from Backend) (*encoded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision := from.Revision()
	if s.last != nil && s.revision == revision && time.Since(s.at) < statusFresh {
		return s.last, nil
	}
	at := time.Now()
	next, err := encode(completeStatus(from.Status()))
	if err != nil {
		return nil, err
	}
	s.last, s.revision, s.at = next, revision, at
	return next, nil
}

// forget drops the cached status, so that the next reader gets a fresh one.
func (s *statuses) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
}

// sending counts the bytes of answers in transit. Clients that do not read hold at most that much memory: one user
// perUser bytes, all together inAll. An answer with many readers counts once.
type sending struct {
	perUser, inAll int64

	mu      sync.Mutex
	all     int64
	users   map[uint32]int64
	readers map[*encoded]map[uint32]int
}

func newSending(perUser, inAll int64) *sending {
	return &sending{
		perUser: perUser, inAll: inAll, users: map[uint32]int64{}, readers: map[*encoded]map[uint32]int{},
	}
}

// full reports whether there is no room for another counted answer to a user.
func (s *sending) full(uid uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all >= s.inAll || s.users[uid] >= s.perUser
}

// begin counts an answer to a user and returns the function that ends it; ok is false if there is no room. The first
// answer to a user may be larger than perUser.
func (s *sending) begin(e *encoded, uid uint32) (end func(), ok bool) {
	size := int64(cap(e.text))
	if size <= smallAnswer {
		return func() {}, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shared, mine := len(s.readers[e]) > 0, s.readers[e][uid] > 0
	if !shared && s.all+size > s.inAll || !mine && s.users[uid] > 0 && s.users[uid]+size > s.perUser {
		return nil, false
	}
	if !shared {
		s.all += size
		s.readers[e] = map[uint32]int{}
	}
	if !mine {
		s.users[uid] += size
	}
	s.readers[e][uid]++
	return sync.OnceFunc(func() { s.end(e, uid, size) }), true
}

func (s *sending) end(e *encoded, uid uint32, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers[e][uid]--; s.readers[e][uid] > 0 {
		return
	}
	delete(s.readers[e], uid)
	if s.users[uid] -= size; s.users[uid] == 0 {
		delete(s.users, uid)
	}
	if len(s.readers[e]) == 0 {
		delete(s.readers, e)
		s.all -= size
	}
}

// serve answers one HTTP request: with a document, or with an error document.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	answer := s.answer(w, r)
	p, known := peerFrom(r.Context())
	sending := s.sending
	if known && s.rules.mayChange(p) {
		sending = s.sendingReserved
	}
	body, end, err := s.prepare(answer.body, sending, p.uid)
	if err != nil {
		if e := wireError(err); e.Code == control.CodeInternal {
			s.opt.Logger.Error("cannot encode a response", "path", r.URL.Path, "error", err)
		}
		answer = refusal(err)
		body, end, _ = s.prepare(answer.body, sending, p.uid) // strings always encode, and it is small
	}
	defer end()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body.text)))
	if answer.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	w.WriteHeader(answer.status)
	// A caller that has disconnected needs no answer.
	_, _ = w.Write(body.text)
}

// prepare encodes a document, one at a time, and counts it as in transit until end is called.
func (s *Server) prepare(doc any, sending *sending, uid uint32) (body *encoded, end func(), err error) {
	s.encoding.Lock()
	defer s.encoding.Unlock()
	switch doc.(type) {
	case control.History, control.SnapshotJob: // do not encode what cannot be sent
		if sending.full(uid) {
			return nil, nil, unread()
		}
	}
	if body, err = encode(doc); err != nil {
		return nil, nil, err
	}
	end, ok := sending.begin(body, uid)
	if !ok {
		return nil, nil, unread()
	}
	return body, end, nil
}

func unread() *control.Error {
	return &control.Error{
		Status: http.StatusServiceUnavailable, Code: control.CodeBusy,
		Message: "cannot send the answer: too many earlier answers of this user are unread",
		Hint:    "retry in a few seconds, or stop the programs that do not read from quorumd's socket",
	}
}
