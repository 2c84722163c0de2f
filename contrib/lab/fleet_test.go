//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// bound limits an action that takes seconds on an idle machine.
	bound = 120 * time.Second
	// callTimeout bounds one call of a test.
	callTimeout = 2 * time.Second
	// lookEvery is the interval at which a condition is checked.
	lookEvery = 100 * time.Millisecond
)

// fleet is a set of hosts of the lab with quorumd, and what the test has observed of them.
type fleet struct {
	*lab.Lab
	t     *testing.T
	deb   string                         // the package of quorumd that is installed on the hosts
	etcds map[*lab.Host]*clientv3.Client // a client of each host's etcd alone
	// whether an agent was killed: the history may then lack the beginning of its operation
	killed  bool
	removed int64            // the revision just before a member was last removed by hand
	data    testbed.DataDirs // every data directory ever seen
}

// newFleet boots hosts with the distribution's unit and the pinned etcd. Neither etcd nor quorumd runs.
func newFleet(t *testing.T, o lab.Options) *fleet {
	t.Helper()
	etcd := testbed.Etcd(t, testbed.DefaultVersion)
	f := &fleet{t: t, deb: packageFile(t, "now"), etcds: map[*lab.Host]*clientv3.Client{}, data: testbed.DataDirs{}}
	if o.From == "" {
		o.Prepare = func(h *lab.Host) error { return h.UseEtcd(etcd) }
	}
	f.Lab = up(t, o)
	for _, h := range f.Hosts {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{h.ClientURL()}, Logger: zap.NewNop()})
		f.check(err)
		t.Cleanup(func() { _ = client.Close() }) // an error does not matter, because the host is gone
		f.etcds[h] = client
	}
	t.Cleanup(f.dump)
	return f
}

// formedFleetRunning returns five hosts: three voters, a standby and a spare. They were set up once for all tests,
// powered off, and have recovered without an operator.
func formedFleetRunning(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, lab.Options{Hosts: 5, From: formedFleet(t)})
	f.eventually("the hosts have come back by themselves", func() bool { return f.has(3, 1) && f.isIdle() })
	return f
}

// formedFleet returns the directory of the fleet that was set up once.
func formedFleet(t *testing.T) string {
	t.Helper()
	dir, done, err := sharedFleetDir()
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if _, err := os.Stat(dir); err != nil {
		f := newFleet(t, lab.Options{Hosts: 5})
		f.form()
		f.save(dir)
	}
	return dir
}

// save ends a running fleet, and keeps its files for formedFleetRunning.
func (f *fleet) save(dir string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), bound)
	defer cancel()
	f.check(f.Save(ctx, dir+".new"))
	f.check(os.Rename(dir+".new", dir))
}

// packageFile returns the package that "make lab" has built, in the current or the next version.
func packageFile(t *testing.T, dir string) string {
	t.Helper()
	checkout, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(checkout, ".cache/lab/packages", dir, "quorumd_*_"+runtime.GOARCH+".deb"))
	if err != nil || len(found) != 1 {
		t.Fatalf("cannot find one package in %s: %v %v; run make lab, which builds it", dir, found, err)
	}
	return found[0]
}

// installManaged installs quorumd on a host and starts it in mode manage. The distribution's unit is enabled: without
// quorumd it would start at boot.
func (f *fleet) installManaged(h *lab.Host) error {
	return f.installManagedWith(h, func(lab.Settings) {})
}

// installManagedWith is like installManaged, with other settings.
func (f *fleet) installManagedWith(h *lab.Host, change func(lab.Settings)) error {
	ctx := f.t.Context()
	if err := h.Install(ctx, f.deb); err != nil {
		return err
	}
	s := h.Settings()
	change(s)
	if err := h.Configure("manage", s); err != nil {
		return err
	}
	_, err := h.Shell(ctx, "systemctl enable --now quorumd && systemctl enable etcd")
	return err
}

// form turns bare hosts into a cluster of three voters and a standby.
func (f *fleet) form() {
	f.t.Helper()
	f.check(f.Each(f.installManaged))
	f.eventually("no host bootstraps without a request", func() bool {
		return f.hasReason(f.Hosts[4], "CLUSTER_UNREACHABLE")
	})
	// A bare host that reboots before a cluster exists must not bootstrap one.
	f.eventually("the start guard is set on a bare host", func() bool {
		_, err := f.Hosts[4].Run(f.t.Context(), "test", "-e", "/var/lib/quorumd-etcd/etcd.hold")
		return err == nil
	})
	f.check(f.Hosts[4].Reboot(f.t.Context()))
	f.bootstrap(f.Hosts[0])
	f.within(2*bound, "there are three voters and a standby", func() bool { return f.has(3, 1) && f.isIdle() })
}

// bootstrap bootstraps the cluster on a host, with quorumctl there.
func (f *fleet) bootstrap(h *lab.Host) {
	f.t.Helper()
	f.eventually(h.Name+" bootstraps the cluster", func() bool {
		_, err := h.Run(f.t.Context(), "quorumctl", "bootstrap", "--yes")
		return err == nil
	})
}

func (f *fleet) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// shell runs a line of shell on a host and returns what it prints.
func (f *fleet) shell(h *lab.Host, line string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), bound)
	defer cancel()
	out, err := h.Shell(ctx, line)
	f.check(err)
	return strings.TrimSpace(out)
}

// eventually waits within the usual bound until cond holds.
func (f *fleet) eventually(what string, cond func() bool) {
	f.t.Helper()
	f.within(bound, what, cond)
}

// within waits until cond holds. Meanwhile it records the data directories.
func (f *fleet) within(limit time.Duration, what string, cond func() bool) {
	f.t.Helper()
	var next time.Time
	began := time.Now()
	testbed.Eventually(f.t, limit, what, func() bool {
		if time.Now().Before(next) {
			return false
		}
		f.noteData()
		holds := cond()
		next = time.Now().Add(lookEvery)
		return holds
	})
	f.t.Logf("%6.1f s: %s", time.Since(began).Seconds(), what)
}

// never checks for the given time that cond does not hold.
func (f *fleet) never(span time.Duration, what string, cond func() bool) {
	f.t.Helper()
	end := time.Now().Add(span)
	f.within(span+bound, "this does not happen for "+span.String()+": "+what, func() bool {
		if cond() {
			f.t.Fatalf("it happened: %s", what)
		}
		return time.Now().After(end)
	})
}

// status queries a host's agent, and returns false if the agent does not answer.
func (f *fleet) status(h *lab.Host) (control.Status, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if _, err := h.PID(); err != nil {
		return control.Status{}, false
	}
	s, err := control.Dial(h.Path("/run/quorumd/control.sock")).Status(ctx)
	return s, err == nil
}

// is reports whether a host has that role, according to its agent.
func (f *fleet) is(h *lab.Host, role policy.Role) bool {
	s, ok := f.status(h)
	return ok && s.Role == role
}

// hasReason reports whether a host's agent has this reason, first or not.
func (f *fleet) hasReason(h *lab.Host, code string) bool {
	s, ok := f.status(h)
	for _, r := range s.Reasons {
		if r.Code == code {
			return ok
		}
	}
	return false
}

// members returns the member list by a linearizable read, from the first host whose etcd answers; nil if none does.
func (f *fleet) members() []*etcdserverpb.Member {
	client, err := f.client()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := client.MemberList(ctx)
	if err != nil {
		return nil
	}
	return answer.Members
}

// mustMembers waits until a voter returns the member list.
func (f *fleet) mustMembers() (found []*etcdserverpb.Member) {
	f.t.Helper()
	f.eventually("a voter returns the member list", func() bool {
		found = f.members()
		return len(found) > 0
	})
	return found
}

// client returns a client of a voter that answers a linearizable read.
func (f *fleet) client() (*clientv3.Client, error) {
	found := make(chan *clientv3.Client, len(f.etcds))
	errs := make(chan error, len(f.etcds))
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	for _, c := range f.etcds {
		go func() {
			if _, err := c.Get(ctx, "/quorumd/"); err != nil {
				errs <- err
				return
			}
			found <- c
		}()
	}
	var last error
	for range f.etcds {
		select {
		case c := <-found:
			return c, nil
		case last = <-errs:
		}
	}
	return nil, fmt.Errorf("no voter answers: %w", last)
}

func (f *fleet) keys() record.Keys { return record.KeysFor(lab.ClusterName) }

// absent reports whether etcd has answered and has no such record.
func (f *fleet) absent(key string) bool {
	client, err := f.client()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := client.Get(ctx, key)
	return err == nil && len(answer.Kvs) == 0
}

// op returns the operation in flight, or nil.
func (f *fleet) op() *record.Op {
	client, err := f.client()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := client.Get(ctx, f.keys().Op())
	if err != nil || len(answer.Kvs) == 0 {
		return nil
	}
	op, err := record.Decode[record.Op](answer.Kvs[0].Value)
	if err != nil {
		return nil
	}
	return &op
}

// isIdle reports whether no operation is in flight and the lock is free.
func (f *fleet) isIdle() bool { return f.absent(f.keys().Op()) && f.absent(f.keys().Lock()) }

// has reports whether the member list has that many voters and learners, all of them started.
func (f *fleet) has(voters, learners int) bool {
	for _, m := range f.members() {
		switch {
		case m.Name == "":
			return false
		case m.IsLearner:
			learners--
		default:
			voters--
		}
	}
	return voters == 0 && learners == 0
}

// serves reports whether a host's own etcd answers, as a voter or a learner.
func (f *fleet) serves(h *lab.Host) bool {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	s, err := f.etcds[h].Status(ctx, h.ClientURL())
	return err == nil && s.Leader != 0
}

// leader returns the host whose etcd leads.
func (f *fleet) leader() *lab.Host {
	f.t.Helper()
	var leader *lab.Host
	f.eventually("there is a leader", func() bool {
		for _, h := range f.Hosts {
			ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
			s, err := f.etcds[h].Status(ctx, f.etcds[h].Endpoints()[0])
			cancel()
			if err == nil && s.Leader == s.Header.MemberId {
				leader = h
				return true
			}
		}
		return false
	})
	return leader
}

// role returns the hosts with a role, according to their agents.
func (f *fleet) role(role policy.Role) []*lab.Host {
	var found []*lab.Host
	for _, h := range f.Hosts {
		if f.is(h, role) {
			found = append(found, h)
		}
	}
	return found
}

// etcdPIDs returns the process of every host's etcd, by host.
func (f *fleet) etcdPIDs() map[string]string {
	f.t.Helper()
	pids := map[string]string{}
	for _, h := range f.Hosts {
		boot, err := h.BootID(f.t.Context())
		f.check(err)
		pid, err := h.Property(f.t.Context(), "etcd", "MainPID")
		f.check(err)
		pids[h.Name] = pid + " of boot " + strings.TrimSpace(boot)
	}
	return pids
}

// dump logs the state of the hosts if the test has failed.
func (f *fleet) dump() {
	if !f.t.Failed() || f.Closed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, m := range f.members() {
		f.t.Logf("member %x %s learner=%v", m.ID, m.Name, m.IsLearner)
	}
	if lines, err := f.history(); err == nil {
		for _, l := range lines {
			f.t.Logf("history: %s %s %s %s: %s", l.Time.Format("15:04:05.000"), l.Name, l.Kind, l.Code, l.Text)
		}
	}
	for _, h := range f.Hosts {
		if s, ok := f.status(h); ok {
			f.t.Logf("%s is %s, next %q, reasons %v", h.Name, s.Role, s.Next.Step, s.Reasons)
		}
		agent, _ := h.Journal(ctx, "quorumd", 40)
		etcd, _ := h.Journal(ctx, "etcd", 10) // empty for a host that is off
		f.t.Logf("the journal of %s:\n%s%s", h.Name, agent, etcd)
	}
}
