// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestACopyThatIsBeingMadeTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	f := &Files{Command: []string{"sh", "-c", `echo '{"copied":5,"all":9}'; read end; echo '{"plan":"abcdefghijkl"}'`}}
	from, end := io.Pipe()
	made, told := recovery.Made{}, make(chan error, 1)
	f.copy = recovery.Copy{Plan: "abcdefghijkl", Runs: true}
	go func() { told <- f.runWork(bounded(t), &made, RebuildCommand, recovery.Work{}, from) }()
	testbed.Eventually(t, time.Minute, "5 of 9 bytes are copied", func() bool {
		c := f.State()
		return c.Done == 5 && c.All == 9
	})
	if _, err := end.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	end.Close()
	if err := <-told; err != nil || made.Plan != "abcdefghijkl" {
		t.Errorf("%+v, %v", made, err)
	}
}

func TestAChildTellsHowFarItIsOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		how, out := &Progress{}, &strings.Builder{}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { how.tell(ctx, out) }()
		<-time.After(1500 * time.Millisecond) // nobody knows how much there is
		how.remains(100)
		how.did(40)
		<-time.After(2 * time.Second)
		synctest.Wait()
		if want := strings.Repeat(`{"copied":40,"all":100}`+"\n", 2); out.String() != want {
			t.Errorf("%q", out.String())
		}
	})
}

func TestWhatAChildSaysIsTakenLineByLineAndBounded(t *testing.T) {
	t.Parallel()
	var told []string
	a := &answer{told: func(done, all int64) { told = append(told, fmt.Sprint(done, "/", all)) }}
	for _, part := range []string{`{"copi`, `ed":0,"all":9}` + "\n" + `{"copied":5,`, `"all":9}` + "\n[1]\n"} {
		if n, err := a.Write([]byte(part)); err != nil || n != len(part) {
			t.Fatal(n, err)
		}
	}
	if got := fmt.Sprint(told, " ", string(a.last)); got != "[0/9 5/9] [1]" {
		t.Errorf("it was told %s", got)
	}
	if _, err := a.Write(make([]byte, maxAnswer+1)); err == nil {
		t.Error("a line without an end is kept")
	}
}
