// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"io"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestCopyReportsItsProgress(t *testing.T) {
	t.Parallel()
	f := &Files{Command: []string{
		"sh", "-c",
		`echo '{"done":5,"all":9}'; read end; echo '{"result":{"plan":"abcdefghijkl"}}'`,
	}}
	from, end := io.Pipe()
	result, ended := recovery.Result{}, make(chan error, 1)
	f.copy = recovery.Copy{Plan: "abcdefghijkl", Running: true}
	go func() { ended <- f.runWork(bounded(t), &result, RebuildCommand, recovery.Work{}, from) }()
	testbed.Eventually(t, time.Minute, "5 of 9 bytes are copied", func() bool {
		c := f.State()
		return c.Done == 5 && c.All == 9
	})
	if _, err := end.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	end.Close()
	if err := <-ended; err != nil || result.Plan != "abcdefghijkl" {
		t.Errorf("%+v, %v", result, err)
	}
}
