// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/poll"
)

func TestHungCallIsNeverRepeatedAndItsValueGrowsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() time.Duration { return time.Since(start) + 1 }
		var l poll.Poller[int]
		looks := 0
		look := func(ctx context.Context) (int, error) {
			looks++
			if looks == 2 {
				<-ctx.Done()
				return 0, errors.New("the disk does not answer")
			}
			return looks, nil
		}
		l.Refresh(t.Context(), now, time.Second, time.Minute, look)
		synctest.Wait()
		if value, err, ok := l.Get(now(), time.Second); !ok || value != 1 || err != nil {
			t.Fatalf("got %d, %v, %v", value, err, ok)
		}
		for range 10 { // the second call hangs
			time.Sleep(2 * time.Second) //nolint:forbidigo // virtual time
			l.Refresh(t.Context(), now, time.Second, time.Minute, look)
			synctest.Wait()
		}
		if !l.Hung(now()+2*time.Minute) || l.Hung(now()) {
			t.Fatal("a call with a timeout of one minute must count as hung after two minutes, and not before")
		}
		if looks != 2 {
			t.Fatalf("%d calls were started, want 2", looks)
		}
		if _, _, ok := l.Get(now(), 10*time.Second); ok {
			t.Fatal("a value from 20 s ago counts as fresh")
		}
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		synctest.Wait()
		if _, err, _ := l.Get(now(), time.Second); err == nil {
			t.Fatal("the hung call left no error")
		}
		l.Refresh(t.Context(), now, time.Second, time.Minute, look)
		synctest.Wait()
		if value, _, ok := l.Get(now(), time.Second); !ok || value != 3 {
			t.Fatalf("after the hung call: got %d, %v, want 3", value, ok)
		}
	})
}

func TestForgettingTheValueDoesNotMakeACallHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() time.Duration { return time.Hour + time.Since(start) }
		var l poll.Poller[int]
		ends := make(chan struct{})
		l.Refresh(t.Context(), now, time.Second, time.Minute, func(context.Context) (int, error) {
			<-ends
			return 1, nil
		})
		synctest.Wait()
		if l.Forget(); l.Hung(now()) || !l.Hung(now()+2*time.Minute+1) {
			t.Error("the call began now and has a timeout of one minute")
		}
		close(ends)
		synctest.Wait()
	})
}

func TestValueFromBeforeAChangeIsNotUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := func() time.Duration { return time.Hour }
		var l poll.Poller[string]
		release := make(chan struct{})
		l.Refresh(t.Context(), now, 0, time.Minute, func(context.Context) (string, error) {
			<-release
			return "before", nil
		})
		synctest.Wait()
		l.Forget()
		close(release)
		synctest.Wait()
		if value, _, ok := l.Get(now(), time.Hour); ok {
			t.Fatalf("got %q, which is from before the change", value)
		}
		l.Refresh(t.Context(), now, time.Hour, time.Minute, func(context.Context) (string, error) {
			return "after", nil
		})
		synctest.Wait()
		if value, _, ok := l.Get(now(), time.Hour); !ok || value != "after" {
			t.Fatalf("got %q, %v", value, ok)
		}
	})
}
