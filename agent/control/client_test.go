// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
	"github.com/quorumd/quorumd/health"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden files")
	goleak.VerifyTestMain(m)
}

func codeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

// fakeServer sends fixed bytes on every connection.
func fakeServer(t *testing.T, answer string) string {
	t.Helper()
	socket := filepath.Join(tempdir.New(t), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.SetDeadline(time.Now().Add(10 * time.Second))
			c.Read(make([]byte, 4096))
			io.WriteString(c, answer)
			c.Close()
		}
	}()
	return socket
}

func TestTheClientReportsAMissingDaemonAfterTwoSeconds(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tempdir.New(t), "s")
	start := time.Now()
	_, err := Dial(socket).Status(t.Context())
	if took := time.Since(start); took < 1900*time.Millisecond || took > 10*time.Second {
		t.Errorf("reported after %s", took)
	}
	want := "cannot reach quorumd at " + socket +
		": connect: no such file or directory; is it running? systemctl status quorumd"
	if err == nil || err.Error() != want || codeOf(err) != CodeUnreachable || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestTheClientReportsAMissingPermissionAtOnce(t *testing.T) {
	t.Parallel()
	c := Dial("/somewhere/s")
	err := c.unreachable(&net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", fs.ErrPermission)})
	if err.Code != CodeNotPermitted || !strings.Contains(err.Hint, "as root") {
		t.Errorf("got %v", err)
	}
	if isRetryable(err) {
		t.Error("the client would retry")
	}
}

func TestTheClientReportsAnUnexpectedAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, code, want string }{
		"another program": {
			"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\npage not found", CodeInternal,
			"without an error document",
		},
		"HTML": {
			"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<html>", CodeInternal,
			"not a quorumd document",
		},
		"truncated answer": {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", CodeUnreachable, "unexpected EOF"},
		"no answer":        {"", CodeUnreachable, "cannot get an answer"},
		"not HTTP":         {"SSH-2.0-OpenSSH\r\n", CodeUnreachable, "malformed HTTP"},
		"another API": {
			"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"apiVersion\":\"v7\"}", CodeInternal,
			`"v7"`,
		},
		"wrong type": {
			"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"hosts\":7}", CodeInternal,
			"hosts: a JSON number",
		},
		"large answer": {
			"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + strings.Repeat(" ", MaxAnswer+1),
			CodeInternal, "larger than 16777216 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Dial(fakeServer(t, c.answer)).Status(t.Context())
			if err == nil || codeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %s: %v", codeOf(err), err)
			}
		})
	}
}

func TestTheContextEndsACallToAHangingDaemon(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tempdir.New(t), "s")
	l, err := net.Listen("unix", socket) // never accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = Dial(socket).Status(ctx)
	if codeOf(err) != CodeTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestTheClientReportsADaemonThatSendsNothing(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tempdir.New(t), "s")
	l, err := net.Listen("unix", socket) // like a stopped daemon: the kernel accepts connections, but no process does
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := Dial(socket)
	if c.patience != 2*time.Second {
		t.Errorf("the client waits %s for the first byte", c.patience)
	}
	c.patience, c.timeout = 100*time.Millisecond, time.Hour
	_, err = c.Status(t.Context())
	want := "quorumd accepted the connection at " + socket +
		" but has not answered for 100ms; check whether quorumd hangs: systemctl status quorumd; journalctl -u quorumd"
	if codeOf(err) != CodeTimeout || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = c.Resume(t.Context())
	if codeOf(err) != CodeTimeout || !strings.Contains(err.Error(), "it may still carry out the request") {
		t.Errorf("a change: %v", err)
	}
}

func TestAClientWithoutAPathUsesTheDefault(t *testing.T) {
	t.Parallel()
	if got := Dial("").socket; got != DefaultSocket {
		t.Errorf("got %q", got)
	}
}

func TestTheClientIgnoresUnknownFields(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(Status{APIVersion: APIVersion, Role: policy.RoleVoter})
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Replace(b, []byte(`{`), []byte(`{"weather":{"rain":true},`), 1)
	socket := fakeServer(t, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+string(newer))
	s, err := Dial(socket).Status(t.Context())
	if err != nil || s.Role != policy.RoleVoter {
		t.Errorf("%+v, %v", s.Role, err)
	}
}

func TestTheClientReadsStatesOfANewerVersionAsUnknown(t *testing.T) {
	t.Parallel()
	answer := func(document string) *Client {
		return Dial(fakeServer(t, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+document))
	}
	s, err := answer(`{"apiVersion":"` + APIVersion + `","role":"voter","health":{"state":"DEGRADED",
		"mutes":[{"code":"CLOCK_OFF","state":"DEGRADED"}]}}`).Status(t.Context())
	if err != nil || s.Role != policy.RoleVoter || s.Health.State != "DEGRADED" || len(s.Health.Mutes) != 1 ||
		s.Health.Mutes[0].State != health.Unknown {
		t.Errorf("status: %+v, %v", s, err)
	}
	c, err := answer(`{"checks":[{"name":"disk","rules":[{"from":["OK","DEGRADED"],"to":"DEGRADED"}],
		"codes":[{"code":"DISK_FAILED","state":"FAILED"},{"code":"DISK_DEGRADED","state":"DEGRADED",
		"muted":{"state":"DEGRADED"}}]}]}`).Checks(t.Context())
	if err != nil || len(c.Checks) != 1 || len(c.Checks[0].Codes) != 2 ||
		c.Checks[0].Codes[0].State != health.Failed || c.Checks[0].Codes[1].State != health.Unknown {
		t.Errorf("checks: %+v, %v", c, err)
	}
}
