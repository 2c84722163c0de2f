// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnswerIsAcceptedAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	many := make([]string, MaxEndpoints+1)
	for i := range many {
		many[i] = fmt.Sprintf("https://192.0.2.1:%d", 2379+i)
	}
	for _, c := range []struct {
		found   []string
		wantErr string // empty: it is accepted
	}{
		{[]string{"https://n2:2379", "https://n1:2379", "https://n2:2379", "https://[2001:db8::1]:2379"}, ""},
		{nil, "does not prove that there is no cluster"},
		{many, "65 endpoints; the maximum is 64"},
		{[]string{"https://n1:2379", "http://n2:2379"}, "does not use https"},
		{[]string{"https://n1"}, "is not a URL"},
		{[]string{"https://n1:0"}, "is not a URL"},
		{[]string{"https://n1:99999"}, "is not a URL"},
		{[]string{"https://:2379"}, "is not a URL"},
		{[]string{"https://n1:2379/v3"}, "is not a URL"},
		{[]string{"https://n1:2379/"}, "is not a URL"},
		{[]string{"https://root:secret@n1:2379"}, "is not a URL"},
		{[]string{"https://n1:2379?x=y"}, "is not a URL"},
		{[]string{"https://" + strings.Repeat("n", 300) + ":2379"}, "is not a URL"},
		{[]string{"\x00\xff"}, "is not a URL"},
		{[]string{"<html>"}, "does not use https"},
	} {
		got, err := Accept(c.found, "https")
		if c.wantErr == "" {
			if err != nil || !slices.Equal(got, []string{
				"https://[2001:db8::1]:2379", "https://n1:2379",
				"https://n2:2379",
			}) {
				t.Errorf("%q: %v %v", c.found, got, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.wantErr) || got != nil {
			t.Errorf("%.80q: %v %v, want %q", c.found, got, err, c.wantErr)
		}
	}
}

// recorder records the reports of Run, in order.
type recorder struct{ all []string }

func (t *recorder) report(endpoints []string, err error) {
	if err != nil {
		t.all = append(t.all, err.Error())
		return
	}
	t.all = append(t.all, strings.Join(endpoints, " "))
}

func TestEachLookupIsReportedAndChangesAreLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := [][]string{{"http://n1:1"}, {"http://n1:1"}, {}, {}, {"http://n2:2"}}
		lookups := 0
		var seen recorder
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		go Run(ctx, Options{
			Source: func(context.Context) ([]string, error) {
				lookups++
				return answers[lookups-1], nil
			},
			Scheme: "http", Interval: 30 * time.Second, Timeout: time.Second, Report: seen.report,
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		time.Sleep(4*30*time.Second + time.Second) //nolint:forbidigo // virtual time
		cancel()
		synctest.Wait()
		empty := "the answer is empty, which does not prove that there is no cluster"
		if want := []string{"http://n1:1", "http://n1:1", empty, empty, "http://n2:2"}; !slices.Equal(seen.all, want) {
			t.Errorf("%q", seen.all)
		}
		if lines := strings.Count(log.String(), "\n"); lines != 3 {
			t.Errorf("%d lines:\n%s", lines, log.String())
		}
	})
}

func TestHungLookupIsReportedAndNoOtherIsStartedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lookups := 0
		var seen recorder
		ctx, cancel := context.WithCancel(t.Context())
		go Run(ctx, Options{
			Source: func(context.Context) ([]string, error) {
				if lookups++; lookups == 1 {
					// The lookup ignores its context and ends only during the fourth interval.
					time.Sleep(95 * time.Second) //nolint:forbidigo // virtual time
				}
				return []string{fmt.Sprintf("http://n%d:1", lookups)}, nil
			},
			Scheme: "http", Interval: 30 * time.Second, Timeout: 10 * time.Second, Report: seen.report,
			Logger: slog.New(slog.DiscardHandler),
		})
		time.Sleep(125 * time.Second) //nolint:forbidigo // virtual time
		cancel()
		synctest.Wait()
		hung := "the lookup did not finish within 10s"
		if want := []string{hung, hung, hung, "http://n1:1", "http://n2:1"}; !slices.Equal(seen.all, want) {
			t.Errorf("%q", seen.all)
		}
	})
}

func TestFileHasOneURLPerLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"# ours\n\nhttp://n1:1\n  http://n2:1  \r\n": "[http://n1:1 http://n2:1]",
		"":                              "[]",
		strings.Repeat("x", MaxBytes+1): "the answer is longer than 8 KiB",
	} {
		path := filepath.Join(dir, "endpoints")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := File(path)(t.Context())
		if lines := fmt.Sprint(got); err != nil && err.Error() != want || err == nil && lines != want {
			t.Errorf("%.20q: %v %v", text, got, err)
		}
	}
	for _, path := range []string{filepath.Join(dir, "none"), dir, pipe} {
		if got, err := File(path)(t.Context()); err == nil {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestProgramOutputIsReadLikeAFile(t *testing.T) {
	t.Parallel()
	source := Program(func(context.Context) ([]byte, error) { return []byte("#\nhttp://n1:1\n"), nil })
	if got, err := source(t.Context()); err != nil || !slices.Equal(got, []string{"http://n1:1"}) {
		t.Errorf("%v %v", got, err)
	}
	broken := errors.New("its exit code is 7")
	source = Program(func(context.Context) ([]byte, error) { return []byte("http://n1:1\n"), broken })
	if got, err := source(t.Context()); !errors.Is(err, broken) || got != nil {
		t.Errorf("%v %v", got, err)
	}
}
