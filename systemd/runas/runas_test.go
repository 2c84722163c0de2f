// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package runas

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// TestMain also runs the test binary as the service, and as the child that the service starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "serve":
			err := Serve([]string{"/proc/self/exe"}, func(r Request) error {
				if r.Agent != "good" {
					return errors.New("another agent")
				}
				return nil
			})
			if err != nil {
				os.Exit(1)
			}
			os.Exit(0)
		case "echo": // copies stdin to stdout, and writes a word to stderr and, if it has an argument, to file 3
			_, _ = os.Stderr.WriteString("said")
			if len(os.Args) > 2 {
				_, _ = os.NewFile(3, "more").WriteString("more")
			}
			_, _ = io.Copy(os.Stdout, os.Stdin)
			os.Exit(7)
		}
	}
	goleak.VerifyTestMain(m)
}

// pipe returns the write end of a pipe, and a function that closes the write end and returns what was written.
func pipe(t *testing.T) (w *os.File, read func() string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return w, func() string {
		w.Close()
		text, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

func TestAChildHasTheSendersFilesAndTheSenderItsExitCode(t *testing.T) {
	t.Parallel()
	socket := testbed.AcceptYes(t, "serve")
	in, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.WriteString("hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	out, outText := pipe(t)
	said, saidText := pipe(t)
	more, moreText := pipe(t)
	code, err := Send(socket, Request{"good", []string{"echo", "more"}}, in, out, said, more)
	if err != nil || code != 7 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	if o, s, m := outText(), saidText(), moreText(); o != "hello" || s != "said" || m != "more" {
		t.Fatalf("stdout %q, stderr %q, file 3 %q", o, s, m)
	}
}

func TestAForbiddenRequestDoesNotRunAndIsReported(t *testing.T) {
	t.Parallel()
	socket := testbed.AcceptYes(t, "serve")
	out, outText := pipe(t)
	said, saidText := pipe(t)
	code, err := Send(socket, Request{"bad", []string{"echo"}}, os.Stdin, out, said)
	if err != nil || code != 1 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	if o, s := outText(), saidText(); o != "" || !strings.Contains(s, "not allowed: another agent") {
		t.Fatalf("stdout %q, stderr %q", o, s)
	}
}

func TestTheChildEndsWithItsSender(t *testing.T) {
	t.Parallel()
	socket := testbed.AcceptYes(t, "serve")
	hold, release, err := os.Pipe() // the child reads until it is killed
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	defer release.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	send(t, conn, `{"agent":"good","args":["echo"]}`, hold, w, w)
	w.Close()
	began := make([]byte, 4)
	if _, err := io.ReadFull(r, began); err != nil || string(began) != "said" {
		t.Fatalf("the child said %q, %v", began, err)
	}
	conn.Close()
	if err := r.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err != nil { // returns when the last writer has ended
		t.Fatalf("the child is still running: %v", err)
	}
}

func TestAnInvalidRequestHasNoAnswer(t *testing.T) {
	t.Parallel()
	socket := testbed.AcceptYes(t, "serve")
	for name, text := range map[string]string{"no request": "[", "nothing": "x"} {
		conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
		if err != nil {
			t.Fatal(err)
		}
		send(t, conn, text, os.Stdin)
		var b bytes.Buffer
		if _, err := io.Copy(&b, conn); err != nil || b.Len() != 0 {
			t.Errorf("%s: %q, %v", name, b.String(), err)
		}
		conn.Close()
	}
}

func TestWithoutAServiceTheErrorNamesItsUnit(t *testing.T) {
	t.Parallel()
	_, err := Send(filepath.Join(t.TempDir(), "none"), Request{"good", []string{"echo"}}, os.Stdin, os.Stdout,
		os.Stderr)
	if err == nil || !strings.Contains(err.Error(), "quorumd-runas@") {
		t.Fatal(err)
	}
}

func send(t *testing.T, conn *net.UnixConn, text string, files ...*os.File) {
	t.Helper()
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	if _, _, err := conn.WriteMsgUnix([]byte(text), unix.UnixRights(fds...), nil); err != nil {
		t.Fatal(err)
	}
}

func TestAMissingUserEtcdIsNamed(t *testing.T) {
	t.Parallel()
	for want, lookup := range map[string]error{
		"/etc/passwd has no user etcd to own etcd's files → install etcd": user.UnknownUserError("etcd"),
		"the service ended without an answer":                             nil,
	} {
		err := unanswered(func(name string) (*user.User, error) {
			if name != "etcd" {
				t.Errorf("it looks for %s", name)
			}
			return nil, lookup
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
