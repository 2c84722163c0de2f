// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestMain runs the tests, or acts as the child that inspects the data, moves it, or hangs.
func TestMain(m *testing.M) {
	var verb func([]string, io.Writer) error
	switch {
	case len(os.Args) < 3:
	case os.Args[1] == InspectCommand:
		verb = InspectMain
	case os.Args[1] == MoveAsideCommand:
		verb = MoveAsideMain
	}
	if verb != nil {
		if os.Args[2] == "/hang" {
			<-time.After(time.Hour) // until this child is killed
		}
		if err := verb(os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func inChild(t *testing.T, dataDir, walDir string) Dir {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Dir{Command: []string{self}, DataDir: dataDir, WALDir: walDir}
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestDataOfARealMemberNamesItsMemberAndCluster(t *testing.T) {
	t.Parallel()
	member := testbed.StartCluster(t, 1, testbed.ClusterOptions{}).Members[0]
	client, err := member.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	list, err := client.MemberList(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	// Inspect through the child while etcd runs.
	dir := inChild(t, filepath.Join(member.Options.Dir, "data"), "")
	got, err := dir.Inspect(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	want := Contents{ClusterID: list.Header.ClusterId, MemberID: list.Members[0].ID, Mount: got.Mount, Free: got.Free}
	if got != want {
		t.Fatalf("found %+v, want %+v", got, want)
	}
	if got.Free <= 0 {
		t.Errorf("%d bytes are free", got.Free)
	}
	if moved, err := dir.MoveAside(bounded(t)); err == nil || !strings.Contains(err.Error(), "a running etcd uses it") {
		t.Errorf("moved the data of an etcd that runs to %v: %v", moved, err)
	}
}

func TestAbsentOrEmptyDirectoryIsEmpty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "absent"), dir} {
		if got := Inspect(path, ""); !got.Empty || got.Free <= 0 {
			t.Errorf("%s: %+v, want empty, with room", path, got)
		}
	}
}

func TestUnreadableDataIsAProblemAndNotEmpty(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"nothing": "", "text": "this is not a log of etcd", "zeros": strings.Repeat("\x00", 4096),
		"huge frame": "\xff\xff\xff\xff\xff\xff\xff\x00rest",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "member", "wal", "0000000000000000-0000000000000000.wal"), content)
			if got := Inspect(dir, ""); got.Empty || got.Problem == "" {
				t.Fatalf("found %+v, want a problem", got)
			}
		})
	}
}

func TestDataOfAFailedFirstStartNamesNoMember(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "member", "snap", "db"), "x")
	write(t, filepath.Join(dir, "member", "wal.tmp", "0.wal"), "x")
	if got := readContents(dir, ""); got != (Contents{}) {
		t.Fatalf("found %+v, want neither empty nor a problem nor a member", got)
	}
}

func TestSeparateWALDirectoryIsReadToo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wal := filepath.Join(dir, "wal")
	write(t, filepath.Join(wal, "0000000000000000-0000000000000000.wal"), "not a log")
	if got := Inspect(filepath.Join(dir, "data"), wal); got.Empty || got.Problem == "" {
		t.Fatalf("found %+v: the log next to an empty data directory is ignored", got)
	}
}

func TestMovingAsideRenamesAndNeverOverwrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, wal := filepath.Join(dir, "data"), filepath.Join(dir, "wal")
	write(t, filepath.Join(data, "member", "snap", "db"), "database")
	write(t, filepath.Join(wal, "0.wal"), "log")
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	moved, err := MoveAside(data, wal, now)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(data, "member.quorumd-20261120T120000.000Z"), wal + ".quorumd-20261120T120000.000Z"}
	if !slices.Equal(moved, want) {
		t.Fatalf("moved to %v, want %v", moved, want)
	}
	if b, err := os.ReadFile(filepath.Join(want[0], "snap", "db")); err != nil || string(b) != "database" {
		t.Fatalf("the database is gone: %q, %v", b, err)
	}
	if got := Inspect(data, wal); !got.Empty {
		t.Fatalf("afterwards the directory is %+v, want empty", got)
	}
	// A second move at the same instant must overwrite neither the moved nor the current data.
	write(t, filepath.Join(data, "member", "snap", "db"), "second")
	if _, err := MoveAside(data, wal, now); err == nil {
		t.Fatal("data moved earlier was overwritten")
	}
	if b, _ := os.ReadFile(filepath.Join(data, "member", "snap", "db")); string(b) != "second" {
		t.Fatal("the second database is gone")
	}
}

func TestMoveAsideOfAnEmptyDirectorySucceeds(t *testing.T) {
	t.Parallel()
	moved, err := inChild(t, filepath.Join(t.TempDir(), "absent"), "").MoveAside(bounded(t))
	if err != nil || len(moved) != 0 {
		t.Fatalf("moved %v, %v", moved, err)
	}
}

func TestUnreadableDirectoryIsAProblem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "data", "member"), "a file, not a directory")
	got, err := inChild(t, filepath.Join(dir, "data"), "").Inspect(bounded(t))
	if err != nil || got.Problem == "" {
		t.Fatalf("found %+v, %v", got, err)
	}
}

func TestOutputOfAChildIsLimited(t *testing.T) {
	t.Parallel()
	dir := Dir{Command: []string{"sh", "-c", fmt.Sprintf("head -c %d /dev/zero", 2*maxLine)}}
	if _, err := dir.Inspect(bounded(t)); err == nil || !strings.Contains(err.Error(), "is longer than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestInspectOfAHungDiskEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := inChild(t, "/hang", "").Inspect(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error is %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Fatalf("it took %s", took)
	}
}

func FuzzWALHead(f *testing.F) {
	f.Add([]byte("\x04\x00\x00\x00\x00\x00\x00\x84\x08\x04\x10\x00\x00\x00\x00\x00"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, head []byte) {
		path := filepath.Join(t.TempDir(), "0000000000000000-0000000000000000.wal")
		write(t, path, string(head))
		member, cluster, err := walMetadata(path)
		if err == nil && (member == 0 || cluster == 0) {
			t.Fatalf("member %x and cluster %x without an error", member, cluster)
		}
	})
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
