// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/child"
)

// asChild is the argument that makes this program run a job as a child.
const asChild = "-child-of-a-runner"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asOther {
		if err := otherUser(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == asChild {
		if err := child.Main(context.Background(), os.Stdout, childOf(os.Args[2])); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// childOf returns the function that a child runs for a kind of job.
func childOf(kind string) func(context.Context, *child.Progress) (Outcome, error) {
	return func(ctx context.Context, p *child.Progress) (Outcome, error) {
		if args, is := strings.CutPrefix(kind, savesInto); is {
			return saveAlone(ctx, strings.Split(args, "|"), p)
		}
		switch kind {
		case "succeed":
			p.Expect(7 << 20)
			p.Add(7 << 20)
			return Outcome{Snapshots: []Snapshot{{Manifest: Manifest{Name: "one"}}}}, nil
		case "fail":
			return Outcome{}, errors.New("cannot save a snapshot: the disk is full")
		case "killed":
			return Outcome{}, syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "crash":
			os.Stderr.WriteString("it has crashed\n")
			os.Exit(2)
		case "crawl": // never stops, and is too slow
			for range time.NewTicker(10 * time.Millisecond).C {
				p.Add(1)
			}
		}
		<-make(chan struct{})
		return Outcome{}, ctx.Err()
	}
}

// savesInto is the prefix of the kind of a job that saves a file's content into a directory, through a spool.
const savesInto = "save|"

func saveAlone(ctx context.Context, args []string, p *child.Progress) (Outcome, error) {
	raw, err := os.ReadFile(args[1])
	if err != nil {
		return Outcome{}, err
	}
	d, err := OpenDirectory(args[0], "prod")
	if err != nil {
		return Outcome{}, err
	}
	saved, err := Save(ctx, d, streamOf(raw), Options{Spool: args[2], Now: time.Now(), Progress: p.Add})
	return Outcome{Snapshots: []Snapshot{{Manifest: saved}}}, errors.Join(err, d.Close())
}

func runner(patience time.Duration) *Runner {
	return &Runner{Command: []string{os.Args[0], asChild}, Patience: patience, Wall: time.Now}
}

// runs starts a job and returns it when it has ended.
func runs(t *testing.T, r *Runner, kind string) Job {
	t.Helper()
	ended := make(chan Job, 1)
	_, err := r.Start(t.Context(), kind, "root", nil, func(j Job) { ended <- j })
	must(t, err)
	select {
	case j := <-ended:
		return j
	case <-time.After(2 * bound):
		t.Fatal("the job does not end")
		return Job{}
	}
}

func TestJobEndsAsItsProcessDoes(t *testing.T) {
	t.Parallel()
	r := runner(bound)
	if j := runs(t, r, "succeed"); j.Err != nil || j.Number != 1 || j.Bytes != 7<<20 || j.All != 7<<20 ||
		j.Ended.IsZero() ||
		len(j.Outcome.Snapshots) != 1 || j.Outcome.Snapshots[0].Name != "one" {
		t.Errorf("%+v", j)
	}
	for kind, want := range map[string]string{
		"fail":  "cannot save a snapshot: the disk is full",
		"crash": "the process ended before the job was done: exit status 2: it has crashed",
	} {
		if j := runs(t, r, kind); j.Err == nil || j.Err.Error() != want || len(j.Outcome.Snapshots) > 0 {
			t.Errorf("%s: %+v", kind, j)
		}
	}
	if j := r.Job(); j.Number != 3 {
		t.Errorf("%+v", j)
	}
}

func TestJobWithoutProgressIsEnded(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"hang", "crawl"} {
		j := runs(t, runner(time.Second), kind)
		if j.Err == nil || !strings.Contains(j.Err.Error(), "does not answer") {
			t.Errorf("%s: %v", kind, j.Err)
		}
	}
}

func TestOneJobRunsAtATime(t *testing.T) {
	t.Parallel()
	r := runner(bound)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan Job, 1)
	first, err := r.Start(ctx, "hang", "root", nil, func(j Job) { ended <- j })
	must(t, err)
	if again, err := r.Start(t.Context(), "succeed", "root", nil, nil); !errors.Is(err, ErrRunning) ||
		again.Kind != first.Kind {
		t.Errorf("%+v, %v", again, err)
	}
	cancel()
	if j := <-ended; !errors.Is(j.Err, context.Canceled) {
		t.Errorf("%+v", j)
	}
	if j := runs(t, r, "succeed"); j.Err != nil {
		t.Errorf("%+v", j)
	}
}

func TestErrorOfAKilledJobNamesTheMemoryLimit(t *testing.T) {
	t.Parallel()
	if j := runs(t, runner(bound), "killed"); j.Err == nil || !strings.Contains(j.Err.Error(), "signal: killed") ||
		!strings.Contains(j.Err.Error(), "memory limit") {
		t.Errorf("%v", j.Err)
	}
}

func TestJobCanBeStoppedByKindAndIsCleanedUp(t *testing.T) {
	t.Parallel()
	r := runner(bound)
	tidied := make(chan struct{})
	r.Tidy = func() { close(tidied) }
	r.End("hang", "nothing runs")
	ended := make(chan Job, 1)
	_, err := r.Start(t.Context(), "hang", "root", nil, func(j Job) { ended <- j })
	must(t, err)
	r.End("restoreTest", "it is no restore test")
	select {
	case j := <-ended:
		t.Fatalf("a job of another kind was ended: %v", j.Err)
	default:
	}
	r.End("hang", "this host joins")
	if j := <-ended; !errors.Is(j.Err, ErrEnded) || !strings.HasSuffix(j.Err.Error(), ": this host joins") {
		t.Errorf("it has ended with %v", j.Err)
	}
	select {
	case <-tidied:
	case <-time.After(bound):
		t.Error("Tidy was not called")
	}
	for { // until the runner has recorded the end of Tidy
		_, err := r.Start(t.Context(), "succeed", "root", nil, func(j Job) { ended <- j })
		if err == nil {
			break
		}
		runtime.Gosched()
	}
	if j := <-ended; j.Err != nil {
		t.Errorf("the next job: %v", j.Err)
	}
}

// The test starts jobs while others end. Each call of done must receive its own job.
func TestJobThatStartsAsAnotherEndsIsNotMistakenForIt(t *testing.T) {
	t.Parallel()
	r := runner(bound)
	const jobs = 20
	ended := make(chan Job, jobs)
	for i := range jobs {
		kind := []string{"succeed", "fail"}[i%2]
		started, err := Job{}, ErrRunning
		for errors.Is(err, ErrRunning) {
			if t.Context().Err() != nil {
				t.Fatal("the previous job does not end")
			}
			started, err = r.Start(t.Context(), kind, fmt.Sprint(i), nil, func(j Job) { ended <- j })
		}
		must(t, err)
		if started.Number != i+1 || !started.Ended.IsZero() || started.Err != nil {
			t.Fatalf("%+v", started)
		}
	}
	for i := range jobs {
		j := <-ended
		number := j.Number - 1
		failed := number%2 == 1
		if j.By != fmt.Sprint(number) || (j.Err != nil) != failed || (len(j.Outcome.Snapshots) == 1) == failed {
			t.Errorf("%d: %+v", i, j)
		}
	}
}
