// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The settings of the S3 server that StartS3 runs.
const (
	S3AccessKey = "THEACCESSKEY"
	S3SecretKey = "the-secret-key-that-must-not-leak"
	S3Bucket    = "etcd-snapshots"
)

// s3Bound is how long an S3 server may take to answer.
const s3Bound = 30 * time.Second

// StartS3 runs an S3 server (versitygw, built by `make test-s3`) with one bucket until the test ends. It returns the
// server's address and the directory that contains the objects of the bucket as files.
func StartS3(t testing.TB) (address, objects string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("cannot start an S3 server: %v", err)
		}
	}
	root, err := Root()
	must(err)
	program := filepath.Join(root, ".cache", "s3", "versitygw")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("cannot start an S3 server: %v; run `make test-s3`", err)
	}
	dir := t.TempDir()
	data, meta := filepath.Join(dir, "data"), filepath.Join(dir, "meta")
	objects, address = filepath.Join(data, S3Bucket), fmt.Sprintf("127.0.0.1:%d", FreePorts(t, 1)[0])
	must(os.MkdirAll(objects, 0o700))
	must(os.Mkdir(meta, 0o700))
	var output bytes.Buffer
	command := exec.Command(program, "--port", address, "--quiet", "posix", "--sidecar", meta, data)
	command.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+S3AccessKey, "ROOT_SECRET_KEY="+S3SecretKey)
	command.Stdout, command.Stderr = &output, &output
	must(command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("the output of the S3 server:\n%s", &output)
		}
	})
	Eventually(t, s3Bound, "the S3 server answers", func() bool {
		answer, err := http.Get("http://" + address) //nolint:noctx // a server on loopback answers at once
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	})
	return address, objects
}

// S3Credentials writes the access key and the given secret to a file, in the format of the AWS tools, and returns its
// path.
func S3Credentials(t testing.TB, secret string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials")
	text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", S3AccessKey, secret)
	if err := os.WriteFile(file, []byte(text), 0o400); err != nil {
		t.Fatal(err)
	}
	return file
}
