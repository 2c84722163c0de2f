// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build s3

package backup

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// s3To opens the store at an address.
func s3To(t *testing.T, address, secret string) *S3 {
	t.Helper()
	s, err := OpenS3(S3Options{
		Endpoint: &url.URL{Scheme: "http", Host: address}, Bucket: testbed.S3Bucket, Prefix: "backups", Cluster: "prod",
		Region: "us-east-1", Credentials: testbed.S3Credentials(t, secret),
	})
	must(t, err)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return s
}

func TestS3StoreKeepsSnapshotsAsADirectoryDoes(t *testing.T) {
	t.Parallel()
	address, _ := testbed.StartS3(t)
	s, o := s3To(t, address, testbed.S3SecretKey), options(t)
	raw := rawSnapshot(t)
	m, err := Save(t.Context(), s, streamOf(raw), o)
	must(t, err)
	_, err = Save(t.Context(), s, streamOf(raw), o)
	must(t, err)
	must(t, Verify(t.Context(), s, m, o))
	must(t, MarkVerified(t.Context(), s, m))
	must(t, MarkVerified(t.Context(), s, m))
	l, err := List(t.Context(), s, nil)
	must(t, err)
	i := slices.IndexFunc(l.Snapshots, func(s Snapshot) bool { return s.Name == m.Name })
	if len(l.Snapshots) != 2 || len(l.Orphans)+len(l.Unread) > 0 || l.Snapshots[i].VerifiedAt == nil ||
		time.Since(*l.Snapshots[i].VerifiedAt) > time.Minute {
		t.Errorf("%+v", l)
	}
	r, err := Open(t.Context(), s, m, nil)
	must(t, err)
	got, err := io.ReadAll(r)
	must(t, err)
	must(t, r.Close())
	if !bytes.Equal(got, raw) {
		t.Error("other bytes came back")
	}
	must(t, Remove(t.Context(), s, m))
	must(t, Remove(t.Context(), s, m))
	if err := Verify(t.Context(), s, m, o); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("removed: %v", err)
	}
}

func TestOneOfManyConcurrentS3WritersGetsTheName(t *testing.T) {
	t.Parallel()
	address, dir := testbed.StartS3(t)
	var won atomic.Int64
	var winner atomic.Value
	var all sync.WaitGroup
	for writer := range 32 {
		s := s3To(t, address, testbed.S3SecretKey)
		all.Go(func() {
			text := fmt.Sprint("writer ", writer)
			if err := s.PutIfAbsent(t.Context(), "one", []byte(text)); err == nil {
				won.Add(1)
				winner.Store(text)
			}
		})
	}
	all.Wait()
	there, err := os.ReadFile(filepath.Join(dir, "backups", "prod", "one"))
	must(t, err)
	if won.Load() != 1 || winner.Load() != string(there) {
		t.Errorf("%d of the writes have succeeded, and the object contains %q", won.Load(), there)
	}
}

func TestManifestIsWrittenIfTheFirstAnswerIsLost(t *testing.T) {
	t.Parallel()
	address, _ := testbed.StartS3(t)
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	var puts atomic.Int64
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && puts.Add(1) == 1 {
			forward.ServeHTTP(httptest.NewRecorder(), r) // the store has the object, but its answer is lost
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(between.Close)
	s := s3To(t, strings.TrimPrefix(between.URL, "http://"), testbed.S3SecretKey)
	must(t, s.PutIfAbsent(t.Context(), "one.json", []byte("mine")))
	if n := puts.Load(); n < 2 {
		t.Errorf("%d requests: no answer was lost", n)
	}
	if err := s.PutIfAbsent(t.Context(), "one.json", []byte("another's")); err == nil {
		t.Error("a second write replaces the object")
	}
}

func TestDamagedS3ObjectIsDetected(t *testing.T) {
	t.Parallel()
	address, dir := testbed.StartS3(t)
	s, o := s3To(t, address, testbed.S3SecretKey), options(t)
	m, err := Save(t.Context(), s, streamOf(rawSnapshot(t)), o)
	must(t, err)
	path := filepath.Join(dir, "backups", "prod", m.DataName())
	whole, err := os.ReadFile(path)
	must(t, err)
	flipped := bytes.Clone(whole)
	flipped[len(whole)/2] ^= 1
	for name, content := range map[string][]byte{"flipped": flipped, "cut off": whole[:len(whole)/2]} {
		must(t, os.WriteFile(path, content, 0o600))
		if err := Verify(t.Context(), s, m, o); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestS3ErrorNamesTheStoreAndNotItsKeys(t *testing.T) {
	t.Parallel()
	address, dir := testbed.StartS3(t)
	raw := rawSnapshot(t)
	unused := fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	missing := s3To(t, address, testbed.S3SecretKey)
	missing.bucket = "no-such-bucket"
	for want, s := range map[string]*S3{
		"connection refused":           s3To(t, unused, testbed.S3SecretKey),
		"the store refuses the keys":   s3To(t, address, "wrong-key"),
		"has no bucket no-such-bucket": missing,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		_, err := Save(ctx, s, streamOf(raw), options(t))
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if strings.Contains(fmt.Sprint(err), "wrong-key") || strings.Contains(fmt.Sprint(err), testbed.S3SecretKey) {
			t.Errorf("the error shows a key: %v", err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestAbandonedUploadLeavesNothing(t *testing.T) {
	t.Parallel()
	address, dir := testbed.StartS3(t)
	s := s3To(t, address, testbed.S3SecretKey)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// the store has the first part, and the rest never arrives
	content := io.MultiReader(io.LimitReader(rand.Reader, partSize+1), endless{ctx, cancel})
	if err := s.Put(ctx, "half", content); err == nil {
		t.Error("the upload succeeded")
	}
	left, err := s.List(t.Context())
	must(t, err)
	parts := 0
	for u := range s.client.ListIncompleteUploads(t.Context(), testbed.S3Bucket, "", true) {
		must(t, u.Err)
		parts++
	}
	if len(left) > 0 || parts > 0 {
		t.Errorf("%v and %d uploads are left in %s", left, parts, dir)
	}
}

// endless is a reader that cancels the upload at the first read and returns no data.
type endless struct {
	ctx    context.Context
	cancel func()
}

func (e endless) Read([]byte) (int, error) {
	e.cancel()
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

func TestUploadTakesLittleMemory(t *testing.T) {
	address, _ := testbed.StartS3(t)
	s := s3To(t, address, testbed.S3SecretKey)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := uint64(0)
	content := io.LimitReader(rand.Reader, 160<<20)
	err := s.Put(t.Context(), "large", metered{content, func(int64) {
		if runtime.ReadMemStats(&now); now.HeapInuse > before.HeapInuse {
			most = max(most, now.HeapInuse-before.HeapInuse)
		}
	}})
	must(t, err)
	t.Logf("%d MiB at most", most>>20)
	if most > 48<<20 {
		t.Errorf("%d MiB of memory", most>>20)
	}
}

func TestLargeDatabaseIsSavedToS3InLittleMemory(t *testing.T) {
	address, _ := testbed.StartS3(t)
	savesInLittleMemory(t, s3To(t, address, testbed.S3SecretKey))
}

func TestCredentialsReadableByOthersAreRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "credentials")
	for text, want := range map[string]string{
		"aws_access_key_id = A\naws_secret_access_key = SECRET\n": "chmod 0400",
		"aws_secret_access_key = SECRET\n":                        "it must hold the lines",
	} {
		mode := os.FileMode(0o400)
		if want == "chmod 0400" {
			mode = 0o440
		}
		os.Remove(file)
		must(t, os.WriteFile(file, []byte(text), mode))
		must(t, os.Chmod(file, mode))
		_, err := OpenS3(S3Options{Endpoint: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}, Credentials: file})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
