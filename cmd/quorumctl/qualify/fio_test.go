// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// recorded returns the output of fio 3.33 from Debian 12.
func recorded(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/fio.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOutputOfFioIsParsed(t *testing.T) {
	t.Parallel()
	f, err := readFio(append([]byte("fio: a warning\n"), recorded(t)...))
	if err != nil || f.Version != "fio-3.33" || f.Writes < 100 || f.P50 <= 0 || f.P50 > f.P99 || f.P99 > f.Max {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestInvalidOutputOfFioIsRefused(t *testing.T) {
	t.Parallel()
	whole := recorded(t)
	for name, said := range map[string][]byte{
		"nothing": nil, "half": whole[:len(whole)/2], "other": []byte(`{"jobs": [{}, {}]}`),
		"no figures": []byte(`{"jobs": [{}]}`), "list": []byte(`[]`),
		"odd": bytes.ReplaceAll(whole, []byte(`"50.000000"`), []byte(`"half"`)),
	} {
		if f, err := readFio(said); err == nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func FuzzOutputOfFio(f *testing.F) {
	b, err := os.ReadFile("testdata/fio.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, said []byte) {
		if got, err := readFio(said); err == nil && !(got.Writes > 0 && got.P50 > 0 && got.P50 <= got.P99) {
			t.Errorf("%+v", got)
		}
	})
}

func TestLongOutputOfFioIsTruncated(t *testing.T) {
	t.Parallel()
	var b bounded
	for range 3 {
		if n, err := b.Write(make([]byte, mostOfFio/2+1)); n != mostOfFio/2+1 || err != nil {
			t.Error(n, err)
		}
	}
	if b.Len() != mostOfFio {
		t.Error(b.Len())
	}
}

func TestRealFioIsCompared(t *testing.T) {
	t.Parallel()
	r, err := Examine(t.Context(), Options{Child: command(asChild), Dir: t.TempDir(), Fio: true, For: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	empty(t, r.Dir)
	_, missing := exec.LookPath("fio")
	for _, f := range r.Findings {
		if f.Name != "fio" {
			continue
		}
		if missing != nil && f.Result == NotAvailable && f.Text == "it is not installed" {
			return
		}
		if missing == nil && r.Fio != nil && r.Fio.Ratio > 0 && strings.Contains(f.Text, r.Fio.Version) {
			return
		}
		t.Errorf("%+v, %+v", f, r.Fio)
	}
	t.Error("no finding about fio")
}

// script creates a program in place of fio. A separate process writes it; otherwise a child that another test forks
// meanwhile would keep the file open for writing, and a file open for writing cannot be executed.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fio")
	write := exec.Command("/bin/sh", "-c", `cat >"$0" && chmod 700 "$0"`, path)
	write.Stdin = strings.NewReader("#!/bin/sh\n" + text + "\n")
	if err := write.Run(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFioIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	dir, note := t.TempDir(), filepath.Join(t.TempDir(), "pid")
	began := time.Now()
	_, err := runFio(t.Context(), script(t, "trap '' INT; sleep 300 & echo $! >"+note+"; wait; wait"), dir,
		5*time.Second, time.Second)
	if err == nil || err.Error() != "it did not end within 6s" || time.Since(began) > time.Minute {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	pid, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	testbed.Eventually(t, time.Minute, "what it has started is gone", func() bool {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
	empty(t, dir)
}

func TestFioInheritsNoEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_OPERATOR", "x")
	said, err := runFio(t.Context(), script(t, "env"), t.TempDir(), time.Minute, time.Minute)
	if err != nil || strings.Contains(string(said), "SECRET") || !strings.Contains(string(said), "LC_ALL=C\n") {
		t.Errorf("%s, %v", said, err)
	}
}
