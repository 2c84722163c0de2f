// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long && s3

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// s3Store runs an S3 server and returns the configuration of a store on it.
func s3Store(t *testing.T) string {
	t.Helper()
	address, _ := testbed.StartS3(t)
	return fmt.Sprintf("{s3: {endpoint: %q, bucket: %s, region: us-east-1, credentialsFile: %s}}", "http://"+address,
		testbed.S3Bucket, testbed.S3Credentials(t, testbed.S3SecretKey))
}

func TestAClusterThatLostEveryDiskIsRestoredFromS3(t *testing.T) {
	t.Parallel()
	secret := []byte(testbed.S3SecretKey)
	sawArguments := watchArguments(t, secret)
	w, saved, before := saveAndLose(t, s3Store(t), false)
	w.restoreFromSnapshot(saved, before)
	sawArguments()
	w.checkNotWritten(secret)
}

// watchArguments watches the arguments of all processes until the returned function is called. That function fails the
// test if the secret was among them, or if no snapshot job was seen.
func watchArguments(t *testing.T, secret []byte) (ended func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var jobs int
	var found string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(5 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, path := range all {
				line, _ := os.ReadFile(path) // the process may have exited
				if bytes.Contains(line, []byte("\x00"+backup.Command+"\x00")) {
					jobs++
				}
				if bytes.Contains(line, secret) {
					found = string(line)
				}
			}
		}
	}()
	return func() {
		t.Helper()
		cancel()
		<-done
		if jobs == 0 || found != "" {
			t.Errorf("jobs were seen %d times, and the secret among %q", jobs, found)
		}
	}
}

// checkNotWritten checks that no file of any host contains the secret: no log, no record on disk, and nothing in etcd's
// database, such as the host records. Only the operator's credentials file contains it, and that is stored elsewhere.
func (w *world) checkNotWritten(secret []byte) {
	w.t.Helper()
	read, lines := 0, 0
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
			return nil // it has just been removed, or is not a regular file
		}
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if bytes.Contains(text, secret) {
			w.t.Errorf("%s has the secret", path)
		}
		if filepath.Ext(path) == ".log" {
			lines += bytes.Count(text, []byte("\n"))
		}
		read++
		return err
	})
	must(w.t, err)
	w.t.Logf("%d files without the secret, %d lines of logs among them", read, lines)
	if lines < 100 {
		w.t.Errorf("the logs have %d lines", lines)
	}
}
