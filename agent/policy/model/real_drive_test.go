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

// difference is where etcd differs from the model.
type difference struct{ model, etcd string }

func (d *difference) Error() string { return "the model says: " + d.model + "\netcd: " + d.etcd }

func differ(model, etcd string, values ...any) error {
	return &difference{model, fmt.Sprintf(etcd, values...)}
}

// retry is the delay before a membership change that was refused temporarily is sent again.
const retry = 200 * time.Millisecond

// try applies an operation to the real cluster and to the world, and compares them.
func (b *bench) try(o operation) error {
	b.story = append(b.story, fmt.Sprintf("%3d. %s", len(b.story), o.text()))
	var err error
	switch o.kind {
	case opAdd, opPromote, opRemove, opLateAdd, opLatePromote, opLateRemove:
		err = b.change(o)
	case opUp:
		err = b.up(o)
	default:
		if err = b.handle(o); err == nil {
			o.do(&b.w)
		}
	}
	if err == nil && !o.free() {
		err = b.compare()
	}
	b.story = append(b.story, "              "+b.text())
	return err
}

// handle applies an operation that needs no answer of etcd.
func (b *bench) handle(o operation) error {
	i := int(o.host)
	h := b.hosts[i]
	switch o.kind {
	case opStart:
		if d := b.w.hosts[i].data; d == current || d == old {
			b.spawn(i)
		} // with an empty directory it starts when it comes up
	case opStop:
		err := b.end(i, (*testbed.Member).Terminate)
		if err != nil && b.hangs(i) {
			err = b.killHanging(i)
		}
		return err
	case opKill, opCrash:
		return b.end(i, (*testbed.Member).Kill9)
	case opCut, opHeal:
		b.net.set(i, o.kind == opCut)
	case opEnv:
		b.environment(i, o.arg)
	case opAside:
		h.ready = false
		return os.Rename(filepath.Join(h.dir, "data"), filepath.Join(h.dir, fmt.Sprintf("data.%d", len(b.story))))
	}
	return nil
}

// environment records what a host's etcd would start as. If there is no quorum, the joining host has read the list
// before.
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

// change requests a membership change.
func (b *bench) change(o operation) error {
	want, may := b.claims.refuses(&b.w, o), b.claims.may(&b.w, o)
	says := strings.Join(want.texts(), ", or ")
	if want == accepted && may != 0 {
		says += fmt.Sprintf(" (or, for a while, %s)", strings.Join(may.texts(), ", or "))
	}
	if o.kind == opPromote && !b.w.serves(int(o.host)) && b.calls%2 == 0 {
		b.moveLeader() // to a leader that has never been in contact with the learner, if there is one, or away from it
	}
	began := time.Now()
	for {
		got, err := b.ask(o)
		waits := time.Since(began) < b.patience
		switch {
		case err != nil && waits: // there is no leader, or the call was lost
		case err != nil:
			return differ(says, "no answer for %s: %v", b.patience, err)
		case got == want:
			if got == accepted {
				o.do(&b.w)
			}
			return nil
		case may.has(got) && waits:
			b.note(got)
			if got == notInSync { // a leader may never get in contact with it
				return nil
			}
		case got == accepted:
			o.do(&b.w)
			fallthrough
		default:
			return differ(says, "%s", strings.Join(got.texts(), ", or "))
		}
		select {
		case <-time.After(retry):
		case <-b.ctx.Done():
			return b.ctx.Err()
		}
	}
}

// moveLeader makes the next voter the leader. It may fail.
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
					b.story = append(b.story, "              "+hostName(i)+" lets "+hostName(g)+" lead")
					return
				}
			}
		}
	}
}

// note counts an answer that the model leaves open.
func (b *bench) note(a answer) { b.open[a.texts()[0]]++ }

// ask makes the call once. It looks up an unanswered call in the list.
func (b *bench) ask(o operation) (answer, error) {
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

// up waits for the outcome of a start.
func (b *bench) up(o operation) error {
	i := int(o.host)
	h, before := b.hosts[i], b.w.hosts[i]
	want := b.claims.up(&b.w, i, 0)
	says := fmt.Sprintf("%s becomes %s", hostName(i), want.etcdText())
	var err error
	switch {
	case b.hangs(i):
		if err = b.ended(i); err != nil {
			err = b.killHanging(i)
		}
	case before.data == old:
		switch err = b.ended(i); {
		case err == nil && want.unit != inactive && want.unit != failed:
			err = differ(says, "it has exited")
		case err != nil:
			err = differ(says, "%v; its log ends with\n%s", err, h.member.LogTail(8))
		}
	case before.data == current:
		err = b.ready(i, says)
	default:
		o.arg, err = b.firstStart(i, &want, says)
		want = b.claims.up(&b.w, i, o.arg)
	}
	if err != nil {
		return err
	}
	o.do(&b.w)
	if got := b.data(i); h.id != 0 && before.data != old && got != want.data {
		return differ(says, "its data is %s", [...]string{
			"empty", "its member's", "another member's",
			"the remains of an etcd that was no member",
		}[got])
	}
	return nil
}

// firstStart starts an etcd on an empty directory. It returns 1 in how for the other open outcome: etcd received an
// outdated list.
func (b *bench) firstStart(i int, want *host, says string) (how uint8, err error) {
	if b.w.hosts[i].env == noEnv { // its environment is outdated: it lists a member that does not exist
		b.hosts[i].initial = fmt.Sprintf("%s=%s,Z=http://127.0.0.1:1", hostName(i), b.hosts[i].peer)
		for g := range b.w.n {
			if g != i && b.w.hosts[g].list != unlisted {
				b.hosts[i].initial += "," + hostName(g) + "=" + b.hosts[g].peer
			}
		}
		b.hosts[i].state = "existing"
	}
	b.net.join(b.w.hosts[i].isolated != 0)
	defer b.net.join(false)
	b.spawn(i)
	switch {
	case want.unit == active:
		return 0, b.ready(i, says)
	case want.data == current:
		return b.joins(i, says)
	}
	if err := b.ended(i); err != nil {
		return 0, differ(says, "%v", err)
	}
	return 0, nil
}

// joins waits for a joining etcd to create its data. etcd asks the members in turn, and waits 10 s for one that has
// just started.
func (b *bench) joins(i int, says string) (how uint8, err error) {
	h := b.hosts[i]
	err = b.until(3*b.patience, func(context.Context) error {
		if b.data(i) != current && h.runs() {
			return errors.New("it has not created its data")
		}
		return nil
	})
	switch {
	case err == nil && h.runs():
		return 0, nil
	case err != nil:
	case b.claims.old(&b.w, i) && givenOldList(h.member.LogTail(20)):
		b.open["a joining etcd receives an outdated list"]++
		return 1, nil
	default:
		err = errors.New("it has exited")
	}
	return 0, differ(says, "%v; its log ends with\n%s", err, h.member.LogTail(5))
}

// givenOldList reports whether an etcd has exited because the list it received differs from the one it was started
// with: it has more or fewer members, or other ones, such as a learner that was removed before this one was added.
func givenOldList(log string) bool {
	return strings.Contains(log, "member count is unequal") ||
		strings.Contains(log, "no match found for existing member")
}

// versionDecided reports whether the cluster has agreed on its version. Before that, a member that starts for the first
// time exits as incompatible. This lasts less than a second after the first member's start, and the model leaves it
// out.
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

// ready waits until a member is in the list with its name, and answers.
func (b *bench) ready(i int, says string) error {
	err := b.until(b.patience, func(ctx context.Context) error {
		if !b.hosts[i].runs() {
			return errors.New("it has exited")
		}
		s, err := b.conn(i).Status(ctx, b.hosts[i].client)
		if err == nil && s.Leader == 0 {
			err = errors.New("it knows no leader")
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
		return differ(says, "%v; its log ends with\n%s", err, b.hosts[i].member.LogTail(5))
	}
	b.hosts[i].ready = true
	return nil
}
