// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package bootstrap carries what the listed hosts tell each other before there is an etcd: whether each is new, and by
// which attempt to make a cluster it stands.
//
// It promises that nothing is changed by who asks: a host serves one small document, made by the last round of its
// loop, on the port that it has for Prometheus, and none when that round is too long ago. What is read is bounded in
// bytes and time, is of the host whose name is listed, and is forgotten when it is not of now.
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

// Path is where the document is served.
const Path = "/founding"

const (
	version   = 1
	maxBytes  = 4 << 10
	maxText   = 200 // bytes of any field
	intervals = 3   // of the loop, after which a word is not of now any more
)

// document is what a host says of itself.
type document struct {
	Version      int    `json:"version"`
	Host         string `json:"host"`
	Past         string `json:"past,omitempty"`
	List         string `json:"list"`
	PromisedList string `json:"promisedList,omitempty"`
	Attempt      string `json:"attempt,omitempty"`
	Phase        string `json:"phase,omitempty"`
}

// Host is one that is listed.
type Host struct{ Name, URL string }

// Options say whom to ask.
type Options struct {
	Others   []Host
	Interval time.Duration // of the loop
	Timeout  time.Duration // of one question
	TLS      func() *tls.Config
	Now      func() time.Duration
}

// Exchange tells the other hosts of this one, and this one of them. Its methods may be called by several at once.
type Exchange struct {
	opt    Options
	client *http.Client

	mu     sync.Mutex
	own    document
	toldAt time.Duration
	told   bool
	heard  map[string]answer
	phases uint64 // how often the phase of own has changed: an answer of before is not one to this phase's question
}

type answer struct {
	policy.BootstrapAnswer
	at time.Duration // before it was asked
}

// New makes one that has asked nobody.
func New(opt Options) *Exchange {
	refuse := func(*http.Request, []*http.Request) error { return errors.New("it sends elsewhere") }
	dial := &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: maxBytes}
	if opt.TLS != nil {
		dial.TLSClientConfig = opt.TLS()
	}
	return &Exchange{
		opt: opt, heard: map[string]answer{},
		client: &http.Client{Timeout: opt.Timeout, CheckRedirect: refuse, Transport: dial},
	}
}

// fresh is for how long a word is of now.
func (p *Exchange) fresh() time.Duration { return intervals*p.opt.Interval + p.opt.Timeout }

// Publish takes what this host says from now on. When its phase changes, what was answered before is forgotten: the
// others are asked again by a host that has published the new one.
func (p *Exchange) Publish(w policy.BootstrapAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own.Phase != string(w.Phase) {
		p.heard = map[string]answer{}
		p.phases++
	}
	p.own = document{version, w.Name, w.Past, w.List, w.PromisedList, w.Attempt, string(w.Phase)}
	p.toldAt, p.told = p.opt.Now(), true
}

// Answers gives what the others say, in the order of the list. It never waits.
func (p *Exchange) Answers() []policy.BootstrapAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []policy.BootstrapAnswer
	for _, h := range p.opt.Others {
		a, asked := p.heard[h.Name]
		switch {
		case !asked:
			a.BootstrapAnswer = policy.BootstrapAnswer{Name: h.Name, Silent: "it has not been asked yet"}
		case p.opt.Now()-a.at > p.fresh():
			a.BootstrapAnswer = policy.BootstrapAnswer{Name: h.Name, Silent: cmp.Or(a.Silent, "its last answer is old")}
		}
		a.Asked = policy.BootstrapPhase(p.own.Phase)
		all = append(all, a.BootstrapAnswer)
	}
	return all
}

// ServeHTTP gives what this host says.
func (p *Exchange) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	own, ready := p.own, p.told && p.opt.Now()-p.toldAt <= p.fresh()
	p.mu.Unlock()
	if !ready {
		http.Error(w, "the loop has not turned lately", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(own) // who has gone need not know
}

// Run asks the others until ctx ends, while this host is new or has a request to make a cluster.
func (p *Exchange) Run(ctx context.Context) {
	ticker := time.NewTicker(p.opt.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if p.asks() {
			p.askAll(ctx)
		}
	}
}

func (p *Exchange) asks() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told && (p.own.Past == "" || p.own.Phase == string(policy.FoundingAsks))
}

// askAll asks all at once: what they say is of one moment.
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
				p.heard[h.Name] = answer{a, at}
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
		return none, fmt.Errorf("%s says %d", h.URL, resp.StatusCode)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes+1))
	if err != nil {
		return none, err
	}
	return read(b, h.Name)
}

// read refuses what is not the word of that host.
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
		return none, fmt.Errorf("its answer has version %d, and this quorumd knows %d", d.Version, version)
	}
	if d.Host != name {
		return none, fmt.Errorf("its URL leads to %.64q", d.Host)
	}
	for _, text := range []string{d.Past, d.List, d.PromisedList, d.Attempt, d.Phase} {
		if len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			return none, errors.New("its answer has a field that is too long, or no plain text")
		}
	}
	return policy.BootstrapAnswer{
		Name: name, Past: d.Past, List: d.List, PromisedList: d.PromisedList, Attempt: d.Attempt,
		Phase: policy.BootstrapPhase(d.Phase),
	}, nil
}

// brief gives the cause of an error, without the request.
func brief(err error) string {
	if e, is := errors.AsType[*url.Error](err); is {
		err = e.Err
	}
	return err.Error()
}
