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
	// smallAnswer is the size, in bytes, up to which transit does not count an answer. Even if all connections of users
	// other than root wait with such answers, these take at most 8 MiB.
	smallAnswer = 64 << 10
	// statusMaxAge is how long an encoded status is reused. Values such as the age of the loop grow without a new
	// round.
	statusMaxAge = time.Second
	// retryAfter is the Retry-After of a 503, in seconds.
	retryAfter = 2
)

// document is an encoded JSON document. All readers of the same document share its bytes.
type document struct{ text []byte }

// encode returns a document on a line of its own. It escapes nothing for HTML, because no web page shows the document.
func encode(doc any) (*document, error) {
	if d, ok := doc.(*document); ok {
		return d, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil { // a number in the document is not finite
		return nil, fmt.Errorf("cannot encode the answer: %w", err)
	}
	if b.Len() > control.MaxAnswer {
		return nil, fmt.Errorf("cannot send the answer: %d bytes; the limit is %d", b.Len(), control.MaxAnswer)
	}
	return &document{b.Bytes()}, nil
}

// statusCache keeps the last encoded status.
type statusCache struct {
	mu       sync.Mutex
	last     *document
	revision uint64
	at       time.Time
}

// get returns the encoded status. It reuses the last encoded status until the backend publishes a new status, but for
// at most statusMaxAge.
func (c *statusCache) get(from Backend) (*document, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	revision := from.Revision()
	if c.last != nil && c.revision == revision && time.Since(c.at) < statusMaxAge {
		return c.last, nil
	}
	at := time.Now()
	next, err := encode(completeStatus(from.Status()))
	if err != nil {
		return nil, err
	}
	c.last, c.revision, c.at = next, revision, at
	return next, nil
}

// drop removes the cached status, so that the next reader gets a new one.
func (c *statusCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
}

// transit counts the bytes of answers that are being sent. It bounds the memory held by clients that do not read:
// maxPerUser for one user, and maxTotal for all. An answer with many readers counts once.
type transit struct {
	maxPerUser, maxTotal int64

	mu      sync.Mutex
	total   int64
	byUser  map[uint32]int64
	readers map[*document]map[uint32]int
}

func newTransit(maxPerUser, maxTotal int64) *transit {
	return &transit{
		maxPerUser: maxPerUser, maxTotal: maxTotal, byUser: map[uint32]int64{},
		readers: map[*document]map[uint32]int{},
	}
}

// isFull reports whether a user's limit or the limit for all users is reached.
func (t *transit) isFull(uid uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total >= t.maxTotal || t.byUser[uid] >= t.maxPerUser
}

// add adds an answer's size to the user's total and returns the function that subtracts it; ok is false if a limit
// would be exceeded. A single answer may exceed maxPerUser if the user has no other.
func (t *transit) add(d *document, uid uint32) (remove func(), ok bool) {
	size := int64(cap(d.text))
	if size <= smallAnswer {
		return func() {}, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	shared, mine := len(t.readers[d]) > 0, t.readers[d][uid] > 0
	if !shared && t.total+size > t.maxTotal || !mine && t.byUser[uid] > 0 && t.byUser[uid]+size > t.maxPerUser {
		return nil, false
	}
	if !shared {
		t.total += size
		t.readers[d] = map[uint32]int{}
	}
	if !mine {
		t.byUser[uid] += size
	}
	t.readers[d][uid]++
	return sync.OnceFunc(func() { t.remove(d, uid, size) }), true
}

func (t *transit) remove(d *document, uid uint32, size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.readers[d][uid]--; t.readers[d][uid] > 0 {
		return
	}
	delete(t.readers[d], uid)
	if t.byUser[uid] -= size; t.byUser[uid] == 0 {
		delete(t.byUser, uid)
	}
	if len(t.readers[d]) == 0 {
		delete(t.readers, d)
		t.total -= size
	}
}

// serve answers one HTTP request, with a document or an error document.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	answer := s.answer(w, r)
	p, known := peerFrom(r.Context())
	transit := s.transit
	if known && s.rules.mayChange(p) {
		transit = s.transitReserved
	}
	body, sent, err := s.prepare(answer.body, transit, p.uid)
	if err != nil {
		if e := toError(err); e.Code == control.CodeInternal {
			s.opt.Logger.Error("cannot encode a response", "path", r.URL.Path, "error", err)
		}
		answer = refusal(err)
		body, sent, _ = s.prepare(answer.body, transit, p.uid) // cannot fail: body is a small document of strings
	}
	defer sent()
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

// prepare encodes a document while no other is being encoded, and counts it as in transit until sent is called.
func (s *Server) prepare(doc any, transit *transit, uid uint32) (body *document, sent func(), err error) {
	s.encoding.Lock()
	defer s.encoding.Unlock()
	switch doc.(type) {
	case control.History, control.SnapshotJob: // do not encode what cannot be sent
		if transit.isFull(uid) {
			return nil, nil, errUnread()
		}
	}
	if body, err = encode(doc); err != nil {
		return nil, nil, err
	}
	sent, ok := transit.add(body, uid)
	if !ok {
		return nil, nil, errUnread()
	}
	return body, sent, nil
}

func errUnread() *control.Error {
	return &control.Error{
		Status: http.StatusServiceUnavailable, Code: control.CodeBusy,
		Message: "cannot send the answer: too many earlier answers are unread",
		Hint:    "retry in a few seconds, or stop the programs that do not read their answers from quorumd's socket",
	}
}
