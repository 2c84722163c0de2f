// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// recorded is what fio 3.33 of Debian 12 has said.
func recorded(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/fio.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWhatFioSaysIsRead(t *testing.T) {
	t.Parallel()
	f, err := readFio(append([]byte("fio: a warning\n"), recorded(t)...))
	if err != nil || f.Version != "fio-3.33" || f.Writes < 100 || f.P50 <= 0 || f.P50 > f.P99 || f.P99 > f.Max {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestWhatIsNotWhatFioSaysIsRefused(t *testing.T) {
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

func FuzzWhatFioSays(f *testing.F) {
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

func TestFioThatSaysTooMuchIsCutOff(t *testing.T) {
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

func TestTheRealFioIsCompared(t *testing.T) {
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
	t.Error("nothing is said of fio")
}
