// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build s3

package backup

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// The clock of a synctest bubble starts at midnight of 2000-01-01; the store's clock does not.
func TestErrorOfAStoreWithAWrongClockNamesTheRemedy(t *testing.T) {
	t.Parallel()
	address, objects := testbed.StartS3(t)
	credentials := testbed.S3Credentials(t, testbed.S3SecretKey)
	synctest.Test(t, func(t *testing.T) {
		s, err := OpenS3(S3Options{
			Endpoint: &url.URL{Scheme: "http", Host: address}, Bucket: testbed.S3Bucket, Prefix: "backups",
			Cluster: "prod", Region: "us-east-1", Credentials: credentials,
		})
		must(t, err)
		_, listed := s.List(t.Context())
		for what, err := range map[string]error{
			"a list":     listed,
			"a put":      s.Put(t.Context(), "one", strings.NewReader("x")),
			"a manifest": s.PutIfAbsent(t.Context(), "two", nil),
		} {
			const want = "the store's clock and this host's differ by too much (RequestTimeTooSkewed; it is 2000-01-01T"
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	if left := objectsIn(t, objects); len(left) > 0 {
		t.Errorf("objects were written nevertheless: %v", left)
	}
}

func TestFullStoreReportsItAndKeepsItsObjects(t *testing.T) {
	t.Parallel()
	address, objects := testbed.StartS3(t)
	if err := unix.Mount("tmpfs", objects, "tmpfs", 0, "size=32m"); err != nil {
		t.Fatalf("cannot make a small file system: %v; be root", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(objects, unix.MNT_DETACH)) })
	s := s3To(t, address, testbed.S3SecretKey)
	must(t, s.PutIfAbsent(t.Context(), "before", []byte("kept")))

	saved := s.Put(t.Context(), "snapshot", io.LimitReader(rand.Reader, 100<<20))
	const want = "the store is full (InsufficientStorage): make room in the bucket"
	if saved == nil || !strings.Contains(saved.Error(), want) {
		t.Errorf("a snapshot: %v", saved)
	}
	if left := objectsIn(t, objects); len(left) != 1 {
		t.Errorf("it has left %v", left)
	}

	fill, err := os.Create(filepath.Join(objects, "fill"))
	must(t, err)
	if _, err := io.Copy(fill, rand.Reader); err == nil {
		t.Error("the store's file system has no limit")
	}
	must(t, fill.Close())
	large := make([]byte, 9000)
	for what, err := range map[string]error{
		"a manifest": s.PutIfAbsent(t.Context(), "manifest", large),
		"a new text": s.Replace(t.Context(), "before", large),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	r, err := s.Get(t.Context(), "before")
	must(t, err)
	if got, err := io.ReadAll(r); err != nil || string(got) != "kept" {
		t.Errorf("the earlier object is %q, %v", got, err)
	}
	must(t, r.Close())
	must(t, os.Remove(fill.Name()))
	must(t, s.PutIfAbsent(t.Context(), "manifest", large))
}

// objectsIn returns the files of a bucket's directory.
func objectsIn(t *testing.T, dir string) (files []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}))
	return files
}

func TestStoreThatStopsAcceptingDataIsAbandoned(t *testing.T) {
	t.Parallel()
	for name, tick := range map[string]time.Duration{"it hangs": time.Hour, "it trickles": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, objects := testbed.StartS3(t)
			trickle, cut := context.WithCancel(t.Context())
			defer cut()
			s := s3To(t, trickling(trickle, t, address, 3<<20, tick), testbed.S3SecretKey)
			r := &Runner{Patience: 2 * time.Second, Wall: time.Now}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ends, over := make(chan ending, 1), make(chan struct{})
			go func() {
				defer close(over)
				all := int64(0)
				ends <- ending{err: s.Put(ctx, "slow", metered{io.LimitReader(rand.Reader, 40<<20), func(n int64) {
					all += n
					r.mu.Lock()
					r.job.Bytes = all
					r.mu.Unlock()
				}})}
			}()
			e, _ := r.watch(ctx, cancel, ends)
			const want = "the store or etcd does not answer: "
			if e.err == nil || !strings.Contains(e.err.Error(), want) {
				t.Errorf("%v", e.err)
			}
			testbed.Eventually(t, time.Minute, "nothing to be left", func() bool {
				return len(objectsIn(t, objects)) == 0
			})
			cut() // otherwise the library retries its last requests, which remove the upload, for a long time
			select {
			case <-over:
			case <-time.After(time.Minute):
				t.Error("the upload continues")
			}
		})
	}
}

// trickling relays connections to a store: the first bytes (fast is their number) at once, and then one byte per tick,
// until the context ends.
func trickling(ctx context.Context, t *testing.T, to string, fast int64, tick time.Duration) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	context.AfterFunc(ctx, func() { listener.Close() })
	var given atomic.Int64
	forward := func(out io.Writer, in io.Reader) {
		b := make([]byte, 32<<10)
		for {
			n, err := in.Read(b)
			if err != nil {
				return
			}
			for part := b[:n]; len(part) > 0; {
				now := len(part)
				if given.Load() > fast {
					now = 1
					select {
					case <-time.After(tick):
					case <-ctx.Done():
						return
					}
				}
				if _, err := out.Write(part[:now]); err != nil {
					return
				}
				given.Add(int64(now))
				part = part[now:]
			}
		}
	}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			context.AfterFunc(ctx, func() { in.Close(); out.Close() })
			go func() { _, _ = io.Copy(in, out) }()
			go forward(out, in)
		}
	}()
	return listener.Addr().String()
}
