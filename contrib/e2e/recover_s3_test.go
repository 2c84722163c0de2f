// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long && s3

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	s3Access = "THEACCESSKEY"
	s3Secret = "the-secret-key-nobody-may-see"
	s3Bucket = "etcd-snapshots"
)

// s3Store runs an S3 server and gives what a configuration says of it.
func s3Store(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs("../../.cache/s3/versitygw")
	must(t, err)
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: make test-s3 builds it", err)
	}
	dir, address := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	must(t, os.MkdirAll(filepath.Join(dir, "data", s3Bucket), 0o700))
	must(t, os.Mkdir(filepath.Join(dir, "meta"), 0o700))
	var said bytes.Buffer
	command := exec.Command(program, "--port", address, "--quiet", "posix", "--sidecar", filepath.Join(dir, "meta"),
		filepath.Join(dir, "data"))
	command.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s3Access, "ROOT_SECRET_KEY="+s3Secret)
	command.Stdout, command.Stderr = &said, &said
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("the store says %s", &said)
		}
	})
	testbed.Eventually(t, bound, "the store answers", func() bool {
		answer, err := http.Get("http://" + address)
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	})
	file := filepath.Join(dir, "credentials")
	text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", s3Access, s3Secret)
	must(t, os.WriteFile(file, []byte(text), 0o400))
	return fmt.Sprintf("{s3: {endpoint: %q, bucket: %s, region: us-east-1, credentialsFile: %s}}", "http://"+address,
		s3Bucket, file)
}

func TestAClusterOfWhichEveryDiskIsLostIsBroughtBackFromS3(t *testing.T) {
	t.Parallel()
	w, saved, before := savedAndLost(t, s3Store(t))
	w.backFromSnapshot(saved, before)
}
