// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// asChild is the argument that makes this program act as a child.
const asChild = "-child"

// TestMain runs the tests, or acts as a child.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asChild {
		if err := act(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// act is the main function of a child.
func act(kind string) error {
	return map[string]func() error{
		"fail": func() error {
			fmt.Fprintln(os.Stderr, "a library's log line")
			return work(0, errors.New("cannot read it: the disk is full"))
		},
		"succeed": func() error { return work(7, nil) },
		"panic":   func() error { panic("out of range") },
		"exit":    func() error { os.Exit(3); return nil },
		"killed":  func() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) },
		"hang":    func() error { <-time.After(time.Hour); return nil },
		"babble": func() error {
			for text := strings.Repeat("x", 1<<20); ; {
				if _, err := os.Stdout.WriteString(text); err != nil {
					return err
				}
			}
		},
		"complain": func() error { return errors.New(strings.Repeat("x", 2*maxErrorText)) },
		"unknown": func() error {
			return Main(context.Background(), os.Stdout, func(_ context.Context, p *Progress) ([]string, error) {
				p.Expect(-1)
				return nil, nil
			})
		},
	}[kind]()
}

func work(n int64, err error) error {
	return Main(context.Background(), os.Stdout, func(_ context.Context, p *Progress) (string, error) {
		p.Expect(9)
		p.Add(n)
		return "done", err
	})
}

// run runs a child of the given kind, or a shell if script is not empty.
func run(ctx context.Context, kind, script string, result any) (reports []string, err error) {
	command := exec.CommandContext(ctx, os.Args[0], asChild, kind)
	if script != "" {
		command = exec.CommandContext(ctx, "sh", "-c", script)
	}
	err = Run(command, MaxLine, func(done, all int64) { reports = append(reports, fmt.Sprint(done, "/", all)) }, result)
	return reports, err
}

func TestParentReceivesResultAndProgress(t *testing.T) {
	t.Parallel()
	var result string
	reports, err := run(t.Context(), "succeed", "", &result)
	if err != nil || result != "done" || len(reports) == 0 || reports[len(reports)-1] != "7/9" {
		t.Errorf("%q, %v, %v", result, reports, err)
	}
	list := []string{"before"}
	reports, err = run(t.Context(), "unknown", "", &list)
	if err != nil || list != nil || len(reports) == 0 || reports[len(reports)-1] != "0/-1" {
		t.Errorf("an empty result: %q, %v, %v", list, reports, err)
	}
	_, err = run(t.Context(), "", `echo '{"done":5,"all":9}'; printf '{"done":9,"res'; echo 'ult":"whole"}'`, &result)
	if err != nil || result != "whole" {
		t.Errorf("a line in two parts: %q, %v", result, err)
	}
}

func TestEveryFailureOfAChildIsOneError(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"fail":   "cannot read it: the disk is full",
		"panic":  "exit status 2: panic: out of range",
		"exit":   "exit status 3",
		"killed": "signal: killed",
		"babble": "a line of the child's output is longer than 16777216 bytes",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if _, err := run(t.Context(), kind, "", new(string)); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	for script, want := range map[string]string{
		"true":                                        "the child ended without a result",
		`echo '{"done":1}'`:                           "the child ended without a result",
		`printf '{"done":1,"result":"x"}'`:            "incomplete: its last line is cut off",
		`echo '{"done":'`:                             "output is damaged: unexpected end of JSON input",
		`echo panic; sleep 1000`:                      "output is damaged: invalid character",
		`echo '{"result":"x"}'; echo '{}'`:            "it continues after the result",
		`echo '{"result":["x"]}'`:                     "result is damaged: json: cannot unmarshal array",
		`echo '{"result":"x"}'; echo why >&2; false`:  "why",
		`echo '{"error":"no\u001b[2Jscreen"}'; false`: "no[2Jscreen",
		`printf 'no\033[2Jscreen' >&2; false`:         "no[2Jscreen",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			if _, err := run(t.Context(), "", script, new(string)); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	if _, err := run(t.Context(), "complain", "", new(string)); err == nil || len(err.Error()) != maxErrorText {
		t.Errorf("the error text is not bounded: %d bytes", len(err.Error()))
	}
	missing := exec.CommandContext(t.Context(), "/nowhere/program")
	if err := Run(missing, MaxLine, nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing program: %v", err)
	}
}

func TestSilentChildIsKilledWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := run(ctx, "hang", "", new(string))
	if exit, is := errors.AsType[*exec.ExitError](err); !is || exit.Exited() {
		t.Errorf("it has ended with %v", err)
	}
}

func TestChildReportsItsProgressOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &strings.Builder{}
		err := Main(t.Context(), out, func(_ context.Context, p *Progress) (int, error) {
			p.Expect(100)
			p.Add(40)
			<-time.After(2500 * time.Millisecond)
			p.Add(60)
			return 1, nil
		})
		want := strings.Repeat(`{"done":40,"all":100}`+"\n", 2) + `{"done":100,"all":100,"result":1}` + "\n"
		if err != nil || out.String() != want {
			t.Errorf("%q, %v", out.String(), err)
		}
	})
}

// closedPipe is an output whose reader is gone.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestChildEndsIfItsParentNoLongerReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		err := Main(t.Context(), closedPipe{}, func(ctx context.Context, _ *Progress) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
