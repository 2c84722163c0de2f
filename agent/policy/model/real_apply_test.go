// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// difference is a difference between a claim of the model and etcd.
type difference struct{ model, etcd string }

func (d *difference) Error() string { return "the model claims: " + d.model + "\netcd: " + d.etcd }

func differ(model, etcd string, values ...any) error {
	return &difference{model, fmt.Sprintf(etcd, values...)}
}

// retryDelay is the delay before a membership change that was refused temporarily is sent again.
const retryDelay = 200 * time.Millisecond

// apply applies an operation to the real cluster and to the world, and compares them.
func (b *bench) apply(o operation) error {
	b.story = append(b.story, fmt.Sprintf("%3d. %s", len(b.story), o.text()))
	var err error
	switch o.kind {
	case opAdd, opPromote, opRemove, opLateAdd, opLatePromote, opLateRemove:
		err = b.change(o)
	case opUp:
		err = b.waitForStart(o)
	default:
		if err = b.applyLocal(o); err == nil {
			o.do(&b.w)
		}
	}
	if err == nil && !o.isPreparation() {
		err = b.compare()
	}
	b.story = append(b.story, "              "+b.text())
	return err
}

// applyLocal applies to the real cluster an operation that requires no answer from etcd.
func (b *bench) applyLocal(o operation) error {
	i := int(o.host)
	h := b.hosts[i]
	switch o.kind {
	case opStart:
		if d := b.w.hosts[i].data; d == current || d == old {
			b.spawn(i)
		} // with an empty directory, firstStart starts it
	case opStop:
		err := b.stopEtcd(i, (*testbed.Member).Terminate)
		if err != nil && b.mayHang(i) {
			err = b.killHanging(i)
		}
		return err
	case opKill, opCrash:
		return b.stopEtcd(i, (*testbed.Member).Kill9)
	case opCut, opHeal:
		b.net.setIsolated(i, o.kind == opCut)
	case opEnv:
		b.environment(i, o.arg)
	case opAside:
		h.ready = false
		return os.Rename(filepath.Join(h.dir, "data"), filepath.Join(h.dir, fmt.Sprintf("data.%d", len(b.story))))
	}
	return nil
}

// environment sets the environment for the next start of a host's etcd. A joining host gets the current member list,
// which it could have read before a quorum loss.
func (b *bench) environment(i int, env uint8) {
	h := b.hosts[i]
	switch env {
	case newEnv:
		h.initial, h.state = hostName(i)+"="+h.peer, "new"
	case joinEnv:
		var parts []string
		for g := range b.w.n {
			if b.w.hosts[g].list != unlisted {
				parts = append(parts, hostName(g)+"="+b.hosts[g].peer)
			}
		}
		h.initial, h.state = strings.Join(parts, ","), "existing"
	}
}

// change requests a membership change, and compares the answer.
func (b *bench) change(o operation) error {
	want, may := b.claims.refuses(&b.w, o), b.claims.mayRefuse(&b.w, o)
	claim := strings.Join(want.texts(), ", or ")
	if want == accepted && may != 0 {
		claim += fmt.Sprintf(" (or, for a while, %s)", strings.Join(may.texts(), ", or "))
	}
	if o.kind == opPromote && !b.w.serves(int(o.host)) && b.calls%2 == 0 {
		b.moveLeader() // the new leader may never have contacted the learner
	}
	began := time.Now()
	for {
		got, err := b.request(o)
		waits := time.Since(began) < b.patience
		switch {
		case err != nil && waits: // there is no leader or the call was lost, so retry
		case err != nil:
			return differ(claim, "no answer for %s: %v", b.patience, err)
		case got == want:
			if got == accepted {
				o.do(&b.w)
			}
			return nil
		case may.has(got) && waits:
			b.countOpenAnswer(got)
			if got == notInSync { // the leader may never contact the learner
				return nil
			}
		case got == accepted:
			o.do(&b.w)
			fallthrough
		default:
			return differ(claim, "%s", strings.Join(got.texts(), ", or "))
		}
		select {
		case <-time.After(retryDelay):
		case <-b.ctx.Done():
			return b.ctx.Err()
		}
	}
}

// moveLeader transfers leadership to the next voter, if possible.
func (b *bench) moveLeader() {
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Second)
	defer cancel()
	for i := range b.hosts {
		if b.w.hosts[i].list != voter || !b.w.serves(i) {
			continue
		}
		for step := range len(b.hosts) - 1 {
			g := (i + 1 + step) % len(b.hosts)
			if b.w.hosts[g].list == voter && b.w.serves(g) {
				if _, err := b.conn(i).MoveLeader(ctx, b.hosts[g].id); err == nil {
					b.story = append(b.story, "              "+hostName(i)+" transfers leadership to "+hostName(g))
					return
				}
			}
		}
	}
}

// countOpenAnswer counts an answer that the model leaves open.
func (b *bench) countOpenAnswer(a answer) { b.openAnswers[a.texts()[0]]++ }

// request requests a change once. Without an answer, it reads the outcome from the member list.
func (b *bench) request(o operation) (answer, error) {
	ctx, cancel := context.WithTimeout(b.ctx, 3*time.Second)
	defer cancel()
	i := int(o.host)
	conn, h := b.conn(b.voterToAsk(i)), b.hosts[i]
	id, before := h.id, b.w.hosts[i].list
	if id == 0 {
		id = 0xdead
	}
	b.calls++
	var err error
	switch o.kind {
	case opAdd, opLateAdd:
		_, err = conn.MemberAddAsLearner(ctx, []string{h.peer})
	case opPromote, opLatePromote:
		_, err = conn.MemberPromote(ctx, id)
	default:
		_, err = conn.MemberRemove(ctx, id)
	}
	if a, known := answerOf(err); known {
		return a, nil
	}
	ctx, cancel = context.WithTimeout(b.ctx, 3*time.Second)
	defer cancel()
	after, listErr := b.list(ctx, b.voterToAsk(i))
	if listErr == nil && after[i].listed() != before {
		return accepted, nil
	}
	return 0, errors.Join(err, listErr)
}

// waitForStart waits for the outcome of a start or a removal, and compares it.
func (b *bench) waitForStart(o operation) error {
	i := int(o.host)
	h, before := b.hosts[i], b.w.hosts[i]
	want := b.claims.afterStart(&b.w, i, 0)
	claim := fmt.Sprintf("%s becomes %s", hostName(i), want.etcdText())
	var err error
	switch {
	case b.mayHang(i):
		if err = b.waitExited(i); err != nil {
			err = b.killHanging(i)
		}
	case before.data == old:
		switch err = b.waitExited(i); {
		case err == nil && want.unit != inactive && want.unit != failed:
			err = differ(claim, "it has exited")
		case err != nil:
			err = differ(claim, "%v; its log ends with\n%s", err, h.member.LogTail(8))
		}
	case before.data == current:
		err = b.waitReady(i, claim)
	default:
		o.arg, err = b.firstStart(i, &want, claim)
		want = b.claims.afterStart(&b.w, i, o.arg)
	}
	if err != nil {
		return err
	}
	o.do(&b.w)
	if got := b.data(i); h.id != 0 && before.data != old && got != want.data {
		return differ(claim, "its data is %s", [...]string{
			"empty", "its member's", "another member's",
			"left by an etcd that was no member",
		}[got])
	}
	return nil
}

// firstStart starts an etcd on an empty directory. It returns 1 if etcd received an outdated list, which the model
// leaves open, and otherwise 0.
func (b *bench) firstStart(i int, want *host, claim string) (how uint8, err error) {
	if b.w.hosts[i].env == noEnv { // use an outdated environment, with a member that does not exist
		b.hosts[i].initial = fmt.Sprintf("%s=%s,Z=http://127.0.0.1:1", hostName(i), b.hosts[i].peer)
		for g := range b.w.n {
			if g != i && b.w.hosts[g].list != unlisted {
				b.hosts[i].initial += "," + hostName(g) + "=" + b.hosts[g].peer
			}
		}
		b.hosts[i].state = "existing"
	}
	b.net.setJoiningIsolated(b.w.hosts[i].isolated != 0)
	defer b.net.setJoiningIsolated(false)
	b.spawn(i)
	switch {
	case want.unit == active:
		return 0, b.waitReady(i, claim)
	case want.data == current:
		return b.waitJoined(i, claim)
	}
	if err := b.waitExited(i); err != nil {
		return 0, differ(claim, "%v", err)
	}
	return 0, nil
}

// waitJoined waits for a joining etcd to create its data. etcd queries the members one after another, and waits 10 s
// for one that has just started.
func (b *bench) waitJoined(i int, claim string) (how uint8, err error) {
	h := b.hosts[i]
	err = b.retryUntil(3*b.patience, func(context.Context) error {
		if b.data(i) != current && h.runs() {
			return errors.New("it has not created its data")
		}
		return nil
	})
	switch {
	case err == nil && h.runs():
		return 0, nil
	case err != nil:
	case b.claims.mayGetOldList(&b.w, i) && receivedOldList(h.member.LogTail(20)):
		b.openAnswers["a joining etcd receives an outdated list"]++
		return 1, nil
	default:
		err = errors.New("it has exited")
	}
	return 0, differ(claim, "%v; its log ends with\n%s", err, h.member.LogTail(5))
}

// receivedOldList reports whether an etcd has exited because the received member list differs from that in its
// environment: in the number of members, or in a member, such as a learner that was removed before the joining one was
// added.
func receivedOldList(log string) bool {
	return strings.Contains(log, "member count is unequal") ||
		strings.Contains(log, "no match found for existing member")
}

// versionDecided returns an error until the cluster has agreed on its version. Before that, a member that starts for
// the first time exits as incompatible. The model ignores this, because it lasts less than a second after the first
// member's start.
func versionDecided(ctx context.Context, client string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, client+"/version", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var version struct {
		Cluster string `json:"etcdcluster"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&version); err != nil {
		return err
	}
	if version.Cluster == "" || version.Cluster == "not_decided" {
		return errors.New("the cluster has not agreed on its version")
	}
	return nil
}

// waitReady waits until a member has a leader, knows the version of the cluster, and is listed with its name.
func (b *bench) waitReady(i int, claim string) error {
	err := b.retryUntil(b.patience, func(ctx context.Context) error {
		if !b.hosts[i].runs() {
			return errors.New("it has exited")
		}
		s, err := b.conn(i).Status(ctx, b.hosts[i].client)
		if err == nil && s.Leader == 0 {
			err = errors.New("it has no leader")
		}
		if err == nil {
			err = versionDecided(ctx, b.hosts[i].client)
		}
		if err != nil || b.w.hosts[i].list == unlisted {
			return err
		}
		ask := i
		if s.IsLearner {
			ask = b.voterToAsk(i)
		}
		list, err := b.list(ctx, ask)
		if err == nil && (list[i] == nil || !list[i].named) {
			err = errors.New("it has not published its name")
		}
		return err
	})
	if err != nil {
		return differ(claim, "%v; its log ends with\n%s", err, b.hosts[i].member.LogTail(5))
	}
	b.hosts[i].ready = true
	return nil
}
