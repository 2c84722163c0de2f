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

func TestCopyReportsItsProgress(t *testing.T) {
	t.Parallel()
	f := &Files{Command: []string{"sh", "-c", `echo '{"copied":5,"all":9}'; read end; echo '{"plan":"abcdefghijkl"}'`}}
	from, end := io.Pipe()
	result, ended := recovery.Result{}, make(chan error, 1)
	f.copy = recovery.Copy{Plan: "abcdefghijkl", Running: true}
	go func() { ended <- f.runWork(bounded(t), &result, RebuildCommand, recovery.Work{}, from) }()
	testbed.Eventually(t, time.Minute, "5 of 9 bytes are copied", func() bool {
		c := f.State()
		return c.Done == 5 && c.All == 9
	})
	if _, err := end.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	end.Close()
	if err := <-ended; err != nil || result.Plan != "abcdefghijkl" {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestChildReportsItsProgressOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		progress, out := &Progress{}, &strings.Builder{}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { progress.report(ctx, out) }()
		<-time.After(1500 * time.Millisecond) // the total is unknown so far
		progress.expect(100)
		progress.add(40)
		<-time.After(2 * time.Second)
		synctest.Wait()
		if want := strings.Repeat(`{"copied":40,"all":100}`+"\n", 2); out.String() != want {
			t.Errorf("%q", out.String())
		}
	})
}

func TestChildOutputIsReadByLineAndBounded(t *testing.T) {
	t.Parallel()
	var reports []string
	a := &childOutput{progress: func(done, all int64) { reports = append(reports, fmt.Sprint(done, "/", all)) }}
	for _, part := range []string{`{"copi`, `ed":0,"all":9}` + "\n" + `{"copied":5,`, `"all":9}` + "\n[1]\n"} {
		if n, err := a.Write([]byte(part)); err != nil || n != len(part) {
			t.Fatal(n, err)
		}
	}
	if got := fmt.Sprint(reports, " ", string(a.last)); got != "[0/9 5/9] [1]" {
		t.Errorf("reported %s", got)
	}
	if _, err := a.Write(make([]byte, maxAnswer+1)); err == nil {
		t.Error("a line above the limit is accepted")
	}
}
