// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"flag"
	"os"
	"strings"
	"syscall"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func TestFailuresMatchTheGoldenFile(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, f := range []Failure{
		{Op: OpOpen, Errno: syscall.EACCES},
		{Op: OpOpen, Errno: syscall.ENOENT},
		{Op: OpOpen, Errno: syscall.EROFS},
		{Op: OpLock, Errno: syscall.EWOULDBLOCK},
		{Op: OpDevice, Errno: syscall.EXDEV},
		{Op: OpPrepare, Errno: syscall.ENOSPC},
		{Op: OpDirect, Errno: syscall.EIO},
		{Op: OpVerify, Errno: syscall.EBADMSG},
		{Op: OpRotate, Errno: syscall.EFBIG},
		{Op: OpUsage, Errno: syscall.ESTALE},
	} {
		f.Dir, f.Target = "/var/lib/quorumd/probe", "/var/lib/etcd/member/wal"
		out.WriteString(f.Error() + "\n")
		if !errors.Is(&f, f.Errno) {
			t.Errorf("errors.Is does not find %v", f.Errno)
		}
	}
	const golden = "testdata/failures.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("failures read\n%s\nwant\n%s(go test -update writes it)", out.String(), want)
	}
}

func TestEveryOperationHasAName(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for op := opNone; op <= opWAL; op++ {
		if seen[op.String()] {
			t.Errorf("two operations are called %q", op)
		}
		seen[op.String()] = true
	}
	if got := opWAL.String(); got != OpWAL {
		t.Errorf("the last operation is called %q, want %q", got, OpWAL)
	}
	if got := (opWAL + 1).String(); got != "operation 10" {
		t.Errorf("an unknown operation is called %q", got)
	}
	if LaneDirect.String() != "direct" || LaneWAL.String() != "wal" {
		t.Error("the lanes have other names")
	}
}
