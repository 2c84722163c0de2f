// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

func newExchange(now *time.Duration, others ...Host) *Exchange {
	return New(Options{
		Others: others, Interval: time.Second, Timeout: 5 * time.Second, Now: func() time.Duration { return *now },
	})
}

func TestAnswerIsServedAndUsedWhileItIsFresh(t *testing.T) {
	t.Parallel()
	var now time.Duration
	n1 := newExchange(&now)
	server := httptest.NewServer(n1)
	t.Cleanup(server.Close)
	n2 := newExchange(&now, Host{"n1", server.URL})
	want := func(want policy.BootstrapAnswer) {
		t.Helper()
		if got := n2.Answers(); len(got) != 1 || got[0] != want {
			t.Errorf("the answer is %+v, want %+v", got, want)
		}
	}
	want(policy.BootstrapAnswer{Name: "n1", Silent: "it has not been queried yet"})
	n2.askAll(t.Context())
	want(policy.BootstrapAnswer{Name: "n1", Silent: server.URL + " returned HTTP status 503"})
	published := policy.BootstrapAnswer{
		Name: "n1", List: "L", PromisedList: "L", Attempt: "1",
		Past: "it has seen cluster 7",
	}
	n1.Publish(published)
	n2.askAll(t.Context())
	want(published)
	now += n2.fresh() + 1
	want(policy.BootstrapAnswer{Name: "n1", Silent: "its last answer is old"})
	n2.askAll(t.Context())
	want(policy.BootstrapAnswer{Name: "n1", Silent: server.URL + " returned HTTP status 503"}) // n1's answer expired
}

func TestInvalidAnswerIsRefused(t *testing.T) {
	t.Parallel()
	var now time.Duration
	for body, want := range map[string]string{
		`{"version":1,"host":"n2"}`: `a different host answers at its URL: "n2"`,
		`{"version":2,"host":"n1"}`: "its answer has version 2",
		`<html>`:                    "cannot be read",
		strings.Repeat("x", 1<<20):  "longer than",
		`{"version":1,"host":"n1","attempt":"` + strings.Repeat("x", maxText+1) + `"}`: "too long",
		`{"version":1,"host":"n1","past":"\u001b[2J"}`:                                 "not plain text",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(body)) // fails if the client has disconnected
		}))
		t.Cleanup(server.Close)
		p := newExchange(&now, Host{"n1", server.URL})
		p.askAll(t.Context())
		if got := p.Answers()[0]; !strings.Contains(got.Silent, want) || got.Attempt != "" {
			t.Errorf("%.60s is accepted as %+v", body, got)
		}
	}
	elsewhere := httptest.NewServer(http.RedirectHandler("/other", http.StatusFound))
	t.Cleanup(elsewhere.Close)
	p := newExchange(&now, Host{"n1", elsewhere.URL})
	p.askAll(t.Context())
	if got := p.Answers()[0]; !strings.Contains(got.Silent, "it redirects") {
		t.Errorf("a redirect is accepted as %+v", got)
	}
}

func TestAnswerFromBeforeTheRequestWasPublishedDoesNotCount(t *testing.T) {
	t.Parallel()
	var now time.Duration
	n1 := newExchange(&now)
	n1.Publish(policy.BootstrapAnswer{Name: "n1", List: "L"})
	server := httptest.NewServer(n1)
	t.Cleanup(server.Close)
	n2 := newExchange(&now, Host{"n1", server.URL})
	n2.Publish(policy.BootstrapAnswer{Name: "n2", List: "L"})
	n2.askAll(t.Context())
	asked := policy.BootstrapAnswer{Name: "n1", List: "L"}
	if got := n2.Answers()[0]; got != asked {
		t.Fatalf("the answer is %+v", got)
	}
	n2.Publish(policy.BootstrapAnswer{
		Name: "n2", List: "L", Past: "it creates a cluster",
		Phase: policy.BootstrapAsking,
	})
	if got := n2.Answers()[0]; got.Silent == "" {
		t.Errorf("an answer from before the request counts: %+v", got)
	}
	if !n2.shouldAsk() {
		t.Error("a host with a request does not query the others")
	}
	n2.askAll(t.Context())
	if asked.Asked = policy.BootstrapAsking; n2.Answers()[0] != asked {
		t.Errorf("the answer is %+v, want %+v", n2.Answers()[0], asked)
	}
}

// An answer that was requested before Publish changed the phase belongs to the earlier phase.
func TestAnswerInFlightWhileTheRequestIsPublishedDoesNotCount(t *testing.T) {
	t.Parallel()
	var now time.Duration
	n1 := newExchange(&now)
	n1.Publish(policy.BootstrapAnswer{Name: "n1", List: "L"})
	arrived, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-answer
		n1.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	n2 := newExchange(&now, Host{"n1", server.URL})
	n2.Publish(policy.BootstrapAnswer{Name: "n2", List: "L"})
	done := make(chan struct{})
	go func() { n2.askAll(t.Context()); close(done) }()
	<-arrived
	n2.Publish(policy.BootstrapAnswer{Name: "n2", List: "L", Phase: policy.BootstrapAsking})
	close(answer)
	<-done
	if got := n2.Answers()[0]; got.Silent == "" {
		t.Errorf("an answer from before the request counts: %+v", got)
	}
}
