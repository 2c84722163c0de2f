// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package bootstrap exchanges answers between the listed hosts before an etcd cluster exists: whether each host is new,
// and which attempt to create a cluster it supports.
//
// It promises:
//   - A request changes nothing. A host serves one small document from the last round of its loop, or an error if that
//     round is too old.
//   - An answer is limited in bytes and time, must contain the host's listed name, and expires.
package bootstrap

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// Path is the URL path of the document.
const Path = "/bootstrap"

const (
	version   = 1
	maxBytes  = 4 << 10
	maxText   = 200 // maximum bytes of any field
	intervals = 3   // an answer expires after this many loop intervals plus the timeout of a request
)

// document is a host's answer.
type document struct {
	Version      int    `json:"version"`
	Host         string `json:"host"`
	Past         string `json:"past,omitempty"`
	List         string `json:"list"`
	PromisedList string `json:"promisedList,omitempty"`
	Attempt      string `json:"attempt,omitempty"`
	Phase        string `json:"phase,omitempty"`
}

// Host is an entry of bootstrap.hosts.
type Host struct{ Name, URL string }

// Options configure an Exchange.
type Options struct {
	Others   []Host
	Interval time.Duration // interval of the loop
	Timeout  time.Duration // timeout of one request
	TLS      func() *tls.Config
	Now      func() time.Duration
}

// Exchange serves this host's answer and collects those of the others. Its methods may be called concurrently.
type Exchange struct {
	opt    Options
	client *http.Client

	mu          sync.Mutex
	own         document
	publishedAt time.Duration
	published   bool
	answers     map[string]answer
	phases      uint64 // number of phase changes of own; a change invalidates all answers
}

type answer struct {
	policy.BootstrapAnswer
	at time.Duration // when the request was sent
}

// New returns an Exchange without answers.
func New(opt Options) *Exchange {
	refuse := func(*http.Request, []*http.Request) error { return errors.New("it redirects") }
	dial := &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: maxBytes}
	if opt.TLS != nil {
		dial.TLSClientConfig = opt.TLS()
	}
	return &Exchange{
		opt: opt, answers: map[string]answer{},
		client: &http.Client{Timeout: opt.Timeout, CheckRedirect: refuse, Transport: dial},
	}
}

// fresh returns how long an answer is valid.
func (p *Exchange) fresh() time.Duration { return intervals*p.opt.Interval + p.opt.Timeout }

// Publish sets this host's answer. If its phase changes, Publish discards the other hosts' answers. An answer is valid
// only if it was requested after this host published the new phase.
func (p *Exchange) Publish(w policy.BootstrapAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own.Phase != string(w.Phase) {
		p.answers = map[string]answer{}
		p.phases++
	}
	p.own = document{version, w.Name, w.Past, w.List, w.PromisedList, w.Attempt, string(w.Phase)}
	p.publishedAt, p.published = p.opt.Now(), true
}

// Answers returns the other hosts' answers in the order of the list. It never waits for a host.
func (p *Exchange) Answers() []policy.BootstrapAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []policy.BootstrapAnswer
	for _, h := range p.opt.Others {
		a, asked := p.answers[h.Name]
		switch {
		case !asked:
			a.BootstrapAnswer = policy.BootstrapAnswer{Name: h.Name, Silent: "it has not been queried yet"}
		case p.opt.Now()-a.at > p.fresh():
			a.BootstrapAnswer = policy.BootstrapAnswer{Name: h.Name, Silent: cmp.Or(a.Silent, "its last answer is old")}
		}
		a.Asked = policy.BootstrapPhase(p.own.Phase)
		all = append(all, a.BootstrapAnswer)
	}
	return all
}

// ServeHTTP serves this host's answer.
func (p *Exchange) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	own, ready := p.own, p.published && p.opt.Now()-p.publishedAt <= p.fresh()
	p.mu.Unlock()
	if !ready {
		http.Error(w, "the control loop has not completed a round recently", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(own) // fails if the client has disconnected
}

// Run queries the other hosts once per interval while this host is new or has a request to create a cluster, until ctx
// ends.
func (p *Exchange) Run(ctx context.Context) {
	ticker := time.NewTicker(p.opt.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if p.shouldAsk() {
			p.askAll(ctx)
		}
	}
}

func (p *Exchange) shouldAsk() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.published && (p.own.Past == "" || p.own.Phase == string(policy.BootstrapAsking))
}

// askAll queries all hosts concurrently, so that their answers are from about the same time.
func (p *Exchange) askAll(ctx context.Context) {
	var all sync.WaitGroup
	p.mu.Lock()
	phases := p.phases
	p.mu.Unlock()
	for _, h := range p.opt.Others {
		all.Go(func() {
			at := p.opt.Now()
			a, err := p.ask(ctx, h)
			if err != nil {
				a = policy.BootstrapAnswer{Name: h.Name, Silent: brief(err)}
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.phases == phases {
				p.answers[h.Name] = answer{a, at}
			}
		})
	}
	all.Wait()
}

func (p *Exchange) ask(ctx context.Context, h Host) (policy.BootstrapAnswer, error) {
	var none policy.BootstrapAnswer
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(h.URL, "/")+Path, nil)
	if err != nil {
		return none, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return none, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return none, fmt.Errorf("%s returned HTTP status %d", h.URL, resp.StatusCode)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes+1))
	if err != nil {
		return none, err
	}
	return read(b, h.Name)
}

// read parses an answer, and returns an error unless it is a valid answer of the named host.
func read(b []byte, name string) (policy.BootstrapAnswer, error) {
	var none policy.BootstrapAnswer
	if len(b) > maxBytes {
		return none, fmt.Errorf("its answer is longer than %d bytes", maxBytes)
	}
	var d document
	if err := json.Unmarshal(b, &d); err != nil {
		return none, errors.New("its answer cannot be read")
	}
	if d.Version != version {
		return none, fmt.Errorf("its answer has version %d, but this quorumd supports %d", d.Version, version)
	}
	if d.Host != name {
		return none, fmt.Errorf("a different host answers at its URL: %.64q", d.Host)
	}
	for _, text := range []string{d.Past, d.List, d.PromisedList, d.Attempt, d.Phase} {
		if len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			return none, errors.New("its answer has a field that is too long or not plain text")
		}
	}
	return policy.BootstrapAnswer{
		Name: name, Past: d.Past, List: d.List, PromisedList: d.PromisedList, Attempt: d.Attempt,
		Phase: policy.BootstrapPhase(d.Phase),
	}, nil
}

// brief returns the cause of a request's error, without the method and URL.
func brief(err error) string {
	if e, is := errors.AsType[*url.Error](err); is {
		err = e.Err
	}
	return err.Error()
}
