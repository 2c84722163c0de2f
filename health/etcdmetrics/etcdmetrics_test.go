// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcdmetrics

import (
	"bytes"
	"context"
	"crypto/tls"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/health"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded returns the answer of an etcd of that version, after 200 writes with a quota of 64 MiB. The HELP lines and
// the gRPC series were removed.
func recorded(t testing.TB, version string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/etcd-" + version + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEveryFigureIsReadFromEtcdsAnswer(t *testing.T) {
	t.Parallel()
	known := func(v float64) health.Figure { return health.Figure{Value: v, Known: true} }
	for version, want := range map[string]struct {
		size, used      float64
		fsyncs, commits []uint64
	}{
		"3.5": {888832, 843776, []uint64{176, 10, 13, 6}, []uint64{12, 17, 11, 11, 4}},
		"3.6": {880640, 851968, []uint64{166, 10, 25, 6}, []uint64{18, 15, 12, 10, 3}},
	} {
		got, err := Parse(bytes.NewReader(recorded(t, version)))
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range map[string][2]health.Figure{
			"has leader":     {got.HasLeader, known(1)},
			"leader changes": {got.LeaderChanges, known(1)},
			"failed":         {got.ProposalsFailed, known(0)},
			"slow applies":   {got.SlowApplies, known(0)},
			"heartbeats":     {got.HeartbeatFailures, known(0)},
			"size":           {got.DBSize, known(want.size)},
			"in use":         {got.DBInUse, known(want.used)},
			"quota":          {got.Quota, known(64 << 20)},
		} {
			if f[0] != f[1] {
				t.Errorf("%s: %s is %+v, want %+v", version, name, f[0], f[1])
			}
		}
		fsync, commit := got.WALFsync, got.BackendCommit
		if !fsync.Known || len(fsync.Bounds) != 14 || len(fsync.Counts) != 15 || fsync.Bounds[0] != 0.001 ||
			!slices.Equal(fsync.Counts[:4], want.fsyncs) || slices.Max(fsync.Counts[4:]) != 0 {
			t.Errorf("%s: fsyncs %+v", version, fsync)
		}
		if !commit.Known || !slices.Equal(commit.Counts[:5], want.commits) {
			t.Errorf("%s: commits %+v", version, commit)
		}
	}
}

func TestMissingOrImpossibleMetricsAreAbsentAndNotZero(t *testing.T) {
	t.Parallel()
	text := string(recorded(t, "3.6"))
	figure := func(of func(health.EtcdReading) health.Figure) func(health.EtcdReading) (bool, string) {
		return func(r health.EtcdReading) (bool, string) { f := of(r); return f.Known || f.Value != 0, f.Absent }
	}
	failed := figure(func(r health.EtcdReading) health.Figure { return r.ProposalsFailed })
	size := figure(func(r health.EtcdReading) health.Figure { return r.DBSize })
	fsync := func(r health.EtcdReading) (bool, string) { return r.WALFsync.Known, r.WALFsync.Absent }
	const syncs = "fsync_duration_seconds"
	const bucket = syncs + `_bucket{le="0.004"} `
	for what, c := range map[string]struct {
		old, now string
		of       func(health.EtcdReading) (bool, string)
		why      string
	}{
		"another version":       {"etcd_server_proposals_failed_total", "etcd_other", failed, "does not report"},
		"a negative count":      {"proposals_failed_total 0", "proposals_failed_total -4", failed, "impossible"},
		"no number":             {"proposals_failed_total 0", "proposals_failed_total NaN", failed, "impossible"},
		"too large":             {"proposals_failed_total 0", "proposals_failed_total 1e300", failed, "impossible"},
		"two of them":           {"etcd_server_proposals_failed_total 0", twice, failed, "impossible"},
		"an endless size":       {"size_in_bytes 880640", "size_in_bytes +Inf", size, "impossible"},
		"buckets that fall":     {bucket + "201", bucket + "20", fsync, "impossible"},
		"half a write":          {bucket + "201", bucket + "201.5", fsync, "impossible"},
		"another count":         {syncs + "_count 207", syncs + "_count 9", fsync, "impossible"},
		"a negative sum":        {syncs + "_sum 0.2", syncs + "_sum -0.2", fsync, "impossible"},
		"buckets out of order":  {bucket, syncs + `_bucket{le="9"} `, fsync, "impossible"},
		"no bucket for the end": {syncs + `_bucket{le="+Inf"}`, syncs + `_bucket{le="99"}`, fsync, "impossible"},
		"not a histogram":       {syncs + " histogram", syncs + " untyped", fsync, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			spoilt := strings.ReplaceAll(text, c.old, c.now)
			if spoilt == text {
				t.Fatalf("nothing to spoil: %s", c.old)
			}
			r, err := Parse(strings.NewReader(spoilt))
			if err != nil {
				return // the whole answer is rejected
			}
			if known, why := c.of(r); known || !strings.Contains(why, c.why) {
				t.Errorf("known %v, why %q; want why: %s", known, why, c.why)
			}
			if !r.Quota.Known {
				t.Errorf("a valid figure is unknown: %+v", r.Quota)
			}
		})
	}
}

const twice = `etcd_server_proposals_failed_total{a="1"} 0
etcd_server_proposals_failed_total{a="2"} 0`

func TestAnUnreadableEtcdHasOneReasonPerCause(t *testing.T) {
	t.Parallel()
	page := recorded(t, "3.6")
	for what, c := range map[string]struct {
		handler http.HandlerFunc
		secure  bool
		why     string
	}{
		"it answers":        {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }, false, ""},
		"it has no metrics": {http.NotFound, false, "etcd answers 404"},
		"it sends elsewhere": {
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
			},
			false, "etcd answers 302",
		},
		"it hangs": {
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			false, "etcd timed out",
		},
		"it never ends":          {endless("etcd_server_x 1\n"), false, "metrics are too large"},
		"one metric without end": {endless("etcd_server_has_leader 1\n"), false, "metrics are too large"},
		"it has one line":        {endless("xxxxxxxxxxxxxxxx"), false, "metrics are too large"},
		"it is something else": {
			func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte("etcd_server_has_leader <html>\n"))
			},
			false, "metrics are inconsistent",
		},
		"untrusted certificate": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) },
			true, "does not trust",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(c.handler)
			server.Config.ErrorLog = nil
			if c.secure {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			r, err := New(server.URL, func() *tls.Config { return nil })
			if err != nil {
				t.Fatal(err)
			}
			said := map[string]bool{}
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if c.why == "etcd timed out" {
					ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
				}
				got := r.Read(ctx)
				cancel()
				if got.Quota.Known != (c.why == "") || !strings.Contains(got.Quota.Absent, c.why) {
					t.Errorf("read %+v, want why: %s", got.Quota, c.why)
				}
				said[got.WALFsync.Absent] = true
			}
			if len(said) != 1 {
				t.Errorf("several reasons: %v", said)
			}
		})
	}
}

// endless sends the same text until the client disconnects.
func endless(text string) http.HandlerFunc {
	block := []byte(strings.Repeat(text, 1000))
	return func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
}

func TestARefusedConnectionIsReported(t *testing.T) {
	t.Parallel()
	const closed = "http://127.0.0.1:1" // not a port that was just freed: another test may already use it
	r, err := New(closed, func() *tls.Config { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Read(t.Context()); got.HasLeader.Absent != "connection refused at "+closed+"/metrics" {
		t.Errorf("read %+v", got.HasLeader)
	}
}

func TestAnEtcdOnTheWildcardAddressIsAskedLocally(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"http://0.0.0.0:2381": "http://localhost:2381/metrics", "https://[::]:2379": "https://localhost:2379/metrics",
		"https://192.0.2.1:2379": "https://192.0.2.1:2379/metrics",
	} {
		if r, err := New(base, nil); err != nil || r.url != want {
			t.Errorf("%s: %+v, %v", base, r, err)
		}
	}
}

func FuzzWhatEtcdAnswersIsKnownOrAbsent(f *testing.F) {
	for _, version := range []string{"3.5", "3.6"} {
		var all health.EtcdReading
		lines, err := wanted(bytes.NewReader(recorded(f, version)), func(family string) bool {
			return figures(&all)[family] != nil || family == walFsync
		})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(lines)
	}
	f.Add([]byte(twice))
	f.Add([]byte("# TYPE " + walFsync + " histogram\n" + walFsync + `_bucket{le="NaN"} 1`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Parse(bytes.NewReader(text))
		if err != nil {
			return
		}
		for name, f := range figures(&r) {
			if f.Known != (f.Absent == "") || !f.Known && f.Value != 0 || !(f.Value >= 0) || math.IsInf(f.Value, 0) {
				t.Errorf("%s is %+v", name, f)
			}
		}
		for _, h := range []health.Histogram{r.WALFsync, r.BackendCommit} {
			if h.Known != (h.Absent == "") || h.Known && len(h.Counts) != len(h.Bounds)+1 || h.Count() > mostCounted {
				t.Errorf("a histogram is %+v", h)
			}
			if at, some := h.Quantile(990); some && at.Upto != 0 && at.Upto < at.Over {
				t.Errorf("its quantile is in %+v", at)
			}
		}
	})
}
