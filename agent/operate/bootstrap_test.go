// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// dialing is an etcd client that only reports whether its endpoints accept connections.
type dialing struct {
	cluster.Etcd

	known []string
	err   error
}

func (d dialing) Known() ([]string, error) { return d.known, d.err }

func (dialing) Diagnose(ctx context.Context, endpoint string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", endpoint)
	if err != nil {
		return err
	}
	return conn.Close()
}

// upgrade is a set of commands with only "upgrade" in it.
type upgrade struct{ hooks.Programs }

func (upgrade) Find(name string) error {
	if name != "upgrade" {
		return errors.New("there is no command " + name)
	}
	return nil
}

// host is an Operator whose rounds are published by the test. It counts how many times the loop was woken.
type host struct {
	*Operator
	publisher *publish.Publisher
	files     *hoststate.State
	woken     int
}

func newHost(t *testing.T, endpoints ...string) *host {
	t.Helper()
	dir := t.TempDir()
	files, err := hoststate.Open(hoststate.HostFiles{}, dir+"/state", dir+"/run", nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{files: files}
	var c config.Config
	c.Cluster.Endpoints = endpoints
	log := slog.New(slog.DiscardHandler)
	h.publisher = publish.New(publish.Options{Config: c, Wall: time.Now, Logger: log}, record.KeysFor("test"), files)
	h.Operator = New(Options{
		Config: c, Etcd: dialing{known: endpoints}, Rounds: h.publisher, History: h.publisher.Journal(), Files: files,
		Wall:     time.Now,
		Commands: upgrade{}, Wake: func() { h.woken++ }, Logger: log,
	})
	return h
}

// managed returns a round in which quorumd manages the host and has observed only an empty data directory.
func managed() *round.Round {
	return &round.Round{View: policy.View{
		Self: policy.Self{Mode: policy.Manage}, Data: policy.Data{State: policy.DataEmpty},
	}}
}

func TestBootstrapIsRefusedAtAnySignOfACluster(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := listener.Addr().String()
	t.Cleanup(func() { _ = listener.Close() })
	for name, c := range map[string]struct {
		see       func(*policy.View)
		endpoints []string
		kind      control.Kind
		code      policy.ReasonCode
	}{
		"the host is in mode observe": {
			func(v *policy.View) { v.Self.Mode = policy.Observe }, nil, control.Conflicts,
			policy.ModeObserve,
		},
		"the data directory has not been read yet": {
			func(v *policy.View) { v.Data.State = policy.DataUnknown }, nil, control.NotNow,
			policy.Starting,
		},
		"something answers": {
			func(*policy.View) {},
			[]string{open},
			control.Conflicts,
			policy.ClusterExists,
		},
		"a host does not answer": {
			func(*policy.View) {},
			[]string{"no such endpoint"},
			control.Conflicts,
			policy.ClusterExists,
		},
	} {
		h := newHost(t, c.endpoints...)
		r := managed()
		c.see(&r.View)
		h.publisher.Show(r)
		e, is := errors.AsType[*control.Error](h.Bootstrap(t.Context(), "root"))
		if !is || e.Kind != c.kind || e.Code != string(c.code) || h.files.Bootstrap() != nil || h.woken != 0 {
			t.Errorf("%s: %+v, asked %+v, woken %d times", name, e, h.files.Bootstrap(), h.woken)
		}
	}
}

func TestBootstrapIsRefusedWhileDiscoveryFails(t *testing.T) {
	t.Parallel()
	h := newHost(t, refusing(t))
	h.opt.Etcd = dialing{known: []string{refusing(t)}, err: errors.New("the answer is empty")}
	h.publisher.Show(managed())
	e, is := errors.AsType[*control.Error](h.Bootstrap(t.Context(), "root"))
	if !is || e.Kind != control.Conflicts || !strings.Contains(e.Message, "the answer is empty") ||
		!strings.Contains(e.Hint, "cluster.discovery") || h.files.Bootstrap() != nil {
		t.Errorf("%+v", e)
	}
	h.opt.Etcd = dialing{known: []string{refusing(t)}}
	if err := h.Bootstrap(t.Context(), "root"); err != nil {
		t.Error(err)
	}
}

// refusing returns an address that refuses every connection: its port is reserved, and no process listens there.
func refusing(t *testing.T) string {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	if err := (dialing{}).Diagnose(t.Context(), address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("%s does not refuse: %v", address, err)
	}
	return address
}

func TestBootstrapRequestIsRecordedOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, refusing(t))
	if e, is := errors.AsType[*control.Error](h.Bootstrap(t.Context(), "root")); !is || e.Kind != control.NotNow {
		t.Errorf("before the first round the answer is %v", e)
	}
	h.publisher.Show(managed())
	for range 2 {
		if err := h.Bootstrap(t.Context(), "root"); err != nil {
			t.Fatal(err)
		}
	}
	if b := h.files.Bootstrap(); b == nil || b.By != "root" || h.woken != 1 {
		t.Errorf("the request is %+v, and the loop was woken %d times", b, h.woken)
	}
}

func TestAwaitDataWaitsOnlyForTheDataDirectory(t *testing.T) {
	t.Parallel()
	show := func(change func(v *policy.View)) *round.Round {
		r := managed()
		change(&r.View)
		return r
	}
	unread := show(func(v *policy.View) { v.Data.State = policy.DataUnknown })
	member := show(func(v *policy.View) { v.Data.State = policy.DataMember })
	broken := show(func(v *policy.View) { v.Data = policy.Data{Detail: "no such file"} })
	observe := show(func(v *policy.View) { v.Self.Mode, v.Data.State = policy.Observe, policy.DataUnknown })
	listed := show(func(v *policy.View) { v.Cluster.Listed, v.Data.State = true, policy.DataUnknown })
	for name, c := range map[string]struct {
		shown []*round.Round // one a second; nil for none
		took  time.Duration
	}{
		"it is read":            {[]*round.Round{managed()}, 0},
		"it is read later":      {[]*round.Round{nil, unread, unread, managed()}, 3 * time.Second},
		"it is never read":      {[]*round.Round{unread, unread}, dataWait},
		"there is no round":     {nil, dataWait},
		"it has data":           {[]*round.Round{unread, member}, time.Second},
		"it cannot be read":     {[]*round.Round{unread, broken}, time.Second},
		"quorumd only observes": {[]*round.Round{observe}, 0},
		"a cluster answers":     {[]*round.Round{unread, unread, listed}, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(t)
			ended, began := make(chan time.Duration), time.Now()
			go func() {
				h.AwaitData(t.Context())
				ended <- time.Since(began)
			}()
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for _, r := range c.shown {
				if r != nil {
					h.publisher.Show(r)
				}
				select {
				case took := <-ended:
					if took != c.took {
						t.Errorf("%s: it waited %s", name, took)
					}
					return
				case <-tick.C:
				}
			}
			if took := <-ended; took != c.took {
				t.Errorf("%s: it waited %s", name, took)
			}
		})
	}
}

func TestAwaitDataEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		if h.AwaitData(ctx); time.Since(began) != 2*time.Second {
			t.Errorf("it waited %s", time.Since(began))
		}
	})
}
