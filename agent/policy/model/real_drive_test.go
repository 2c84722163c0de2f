// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// difference is where etcd is not as the model says.
type difference struct{ model, etcd string }

func (d *difference) Error() string { return "the model says: " + d.model + "\netcd: " + d.etcd }

func differ(model, etcd string, values ...any) error {
	return &difference{model, fmt.Sprintf(etcd, values...)}
}

// try lets an operation happen at the real cluster and in the world, and compares them.
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
	if err == nil {
		err = b.compare()
	}
	b.story = append(b.story, "              "+b.text())
	return err
}

// handle does what is not for etcd to answer.
func (b *bench) handle(o operation) error {
	i := int(o.host)
	h := b.hosts[i]
	switch o.kind {
	case opStart:
		if d := b.w.hosts[i].data; d == current || d == old {
			b.spawn(i)
		} // on an empty directory it starts when it comes up
	case opStop:
		return b.end(i, (*testbed.Member).Terminate)
	case opKill, opCrash:
		return b.end(i, (*testbed.Member).Kill9)
	case opCut, opHeal:
		b.net.set(i, o.kind == opCut)
	case opEnv:
		return b.environment(i, o.arg)
	case opAside:
		h.ready = false
		return os.Rename(filepath.Join(h.dir, "data"), filepath.Join(h.dir, fmt.Sprintf("data.%d", len(b.story))))
	}
	return nil
}

// environment notes what the etcd of a host would start as.
func (b *bench) environment(i int, env uint8) error {
	h := b.hosts[i]
	switch env {
	case newEnv:
		h.initial, h.state = hostName(i)+"="+h.peer, "new"
	case joinEnv:
		return b.until(b.patience, func(ctx context.Context) error {
			got, err := b.list(ctx, b.voterToAsk(i))
			var parts []string
			for g := range got {
				parts = append(parts, hostName(g)+"="+b.hosts[g].peer)
			}
			h.initial, h.state = strings.Join(parts, ","), "existing"
			return err
		})
	}
	return nil
}

// change asks for a change of membership.
func (b *bench) change(o operation) error {
	want, may := b.claims.refuses(&b.w, o), b.claims.may(&b.w, o)
	says := strings.Join(want.texts(), ", or ")
	if want == accepted && may != 0 {
		says += fmt.Sprintf(" (or, for a while, %s)", strings.Join(may.texts(), ", or "))
	}
	if o.kind == opPromote && !b.w.serves(int(o.host)) && len(b.story)%2 == 0 {
		b.moveLeader() // to one that has never heard of the learner, if there is one
	}
	began := time.Now()
	for {
		got, err := b.ask(o)
		waits := time.Since(began) < b.patience
		switch {
		case err != nil && waits: // nobody leads, or it was lost
		case err != nil:
			return differ(says, "no answer for %s: %v", b.patience, err)
		case got == want:
			if got == accepted {
				o.do(&b.w)
			}
			return nil
		case may.has(got) && waits:
			b.note(got)
			if got == notInSync { // a leader may never hear of it
				return nil
			}
		case got == accepted:
			o.do(&b.w)
			fallthrough
		default:
			return differ(says, "%s", strings.Join(got.texts(), ", or "))
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-b.ctx.Done():
			return b.ctx.Err()
		}
	}
}

// moveLeader lets another voter lead. It need not succeed.
func (b *bench) moveLeader() {
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Second)
	defer cancel()
	for i := range b.hosts {
		if b.w.hosts[i].list != voter || !b.w.serves(i) {
			continue
		}
		for g, to := range b.hosts {
			if g != i && b.w.hosts[g].list == voter && b.w.serves(g) {
				if _, err := b.conn(i).MoveLeader(ctx, to.id); err == nil {
					b.story = append(b.story, "              "+hostName(i)+" lets "+hostName(g)+" lead")
					return
				}
			}
		}
	}
}

// note counts an answer that the model leaves open.
func (b *bench) note(a answer) { b.open[a.texts()[0]]++ }

// ask makes the call once. A call that was not answered is looked up in the list.
func (b *bench) ask(o operation) (answer, error) {
	ctx, cancel := context.WithTimeout(b.ctx, 3*time.Second)
	defer cancel()
	i := int(o.host)
	before, err := b.list(ctx, b.voterToAsk(i))
	if err != nil {
		return 0, err
	}
	conn, h := b.conn(b.voterToAsk(i)), b.hosts[i]
	id := h.id
	if id == 0 {
		id = 0xdead
	}
	b.calls++
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
	if listErr == nil && (before[i] == nil) != (after[i] == nil) || (before[i] != nil && after[i] != nil && *before[i] != *after[i]) {
		return accepted, nil
	}
	return 0, errors.Join(err, listErr)
}

// up waits for what becomes of an etcd.
func (b *bench) up(o operation) error {
	i := int(o.host)
	h, before := b.hosts[i], b.w.hosts[i]
	want := b.claims.up(&b.w, i)
	says := fmt.Sprintf("%s becomes %s", hostName(i), want.etcdText())
	var err error
	switch {
	case before.data == old && before.unit == starting && !h.ready:
		if err = b.ended(i); err != nil {
			b.open["a removed member that has never been ready hangs"]++
			err = b.end(i, (*testbed.Member).Kill9)
		}
	case before.data == old:
		switch err = b.ended(i); {
		case err == nil && want.unit != inactive && want.unit != failed:
			err = differ(says, "it has ended")
		case err != nil:
			err = differ(says, "%v; its log ends with\n%s", err, h.member.LogTail(8))
		}
	case before.data == current:
		err = b.ready(i, says)
	default:
		err = b.firstStart(i, &want, says)
	}
	if err != nil {
		return err
	}
	o.do(&b.w)
	if got := b.data(i); h.id != 0 && before.data != old && got != want.data {
		return differ(says, "its data is %s", [...]string{"empty", "its member's", "another member's", "what an etcd left that was no member"}[got])
	}
	return nil
}

func (b *bench) firstStart(i int, want *host, says string) error {
	if b.w.hosts[i].env == noEnv { // what it has is of another time: one is listed that is not there
		b.hosts[i].initial = fmt.Sprintf("%s=%s,Z=http://127.0.0.1:1", hostName(i), b.hosts[i].peer)
		for g := range b.w.n {
			if g != i && b.w.hosts[g].list != unlisted {
				b.hosts[i].initial += "," + hostName(g) + "=" + b.hosts[g].peer
			}
		}
		b.hosts[i].state = "existing"
	}
	b.net.join(b.w.hosts[i].apart != 0)
	defer b.net.join(false)
	b.spawn(i)
	switch {
	case want.unit == active:
		return b.ready(i, says)
	case want.data == current: // it asks the members in turn, and waits 10 s for one that has just started itself
		err := b.until(3*b.patience, func(context.Context) error {
			if b.data(i) != current {
				return errors.New("it has not made its data")
			}
			return nil
		})
		if err == nil && !b.hosts[i].runs() {
			err = errors.New("it has ended")
		}
		if err != nil {
			return differ(says, "%v", err)
		}
		return nil
	}
	if err := b.ended(i); err != nil {
		return differ(says, "%v", err)
	}
	return nil
}

// ready waits until a member is in the list with its name, and answers.
func (b *bench) ready(i int, says string) error {
	err := b.until(b.patience, func(ctx context.Context) error {
		if !b.hosts[i].runs() {
			return errors.New("it has ended")
		}
		s, err := b.conn(i).Status(ctx, b.hosts[i].client)
		if err == nil && s.Leader == 0 {
			err = errors.New("it knows no leader")
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
