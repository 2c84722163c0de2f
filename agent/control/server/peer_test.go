// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// me returns the name of the user who runs the test.
func (d *fake) me() string {
	r, err := readRules("", "/etc/group", "/etc/passwd")
	if err != nil {
		return err.Error()
	}
	return r.name(peer{uid: r.self})
}

// handle passes a request to the server's handler as if the given peer had sent it.
func handle(t testing.TB, s *Server, method, target, body string, p peer) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "quorumd"
	w := httptest.NewRecorder()
	s.serve(w, r.WithContext(context.WithValue(r.Context(), peerKey{}, p)))
	return w.Code, w.Body.String()
}

// unprivileged is the main function of this program when a test starts it as another user. It reads, tries to change
// something, and prints the results. If root starts it, it first becomes another user with these groups. It does not
// start as that user, because perhaps only root can run the program or enter its directory.
func unprivileged(socket, groups string) int {
	if os.Geteuid() == 0 {
		var all []int
		if err := json.Unmarshal([]byte(groups), &all); err != nil {
			panic(err)
		}
		err := errors.Join(syscall.Setgroups(all[1:]), syscall.Setgid(all[0]), syscall.Setuid(65534))
		if err != nil {
			panic(err)
		}
	}
	c := control.Dial(socket)
	s, err := c.Status(context.Background())
	fmt.Printf("status %q %v\n", s.Cluster.Name, err)
	_, err = c.Resume(context.Background())
	fmt.Printf("resume %v\n", err)
	return 0
}

// asUnprivileged runs the function unprivileged with other credentials and returns its output. Only root can assume
// other credentials. Without root, the server instead treats the user who runs the test as another user and, if the
// credentials contain the configured group, that user's group as the configured group.
func asUnprivileged(t *testing.T, s *Server, gid uint32, groups ...uint32) string {
	t.Helper()
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		s.rules.self = uint32(os.Geteuid()) + 1
		if slices.Contains(append(groups, gid), s.rules.gid) {
			s.rules.gid = uint32(os.Getegid())
		}
	}
	socket := startServer(t, s)
	all, err := json.Marshal(append([]uint32{gid}, groups...))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe") // works even without access to its directory
	cmd.Env = []string{"CONTROL_TEST_UNPRIVILEGED=" + socket, "CONTROL_TEST_GROUPS=" + string(all)}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestAnUnprivilegedUserMayReadButNotChange(t *testing.T) {
	t.Parallel()
	d := &fake{}
	s := New(Options{Socket: filepath.Join(tempdir.New(t), "s"), Group: "root", Backend: d, Logger: testLog(t)})
	got := asUnprivileged(t, s, 65534)
	if !strings.Contains(got, `status "prod" <nil>`) {
		t.Errorf("reading failed: %s", got)
	}
	if !strings.Contains(got, "resume cannot change anything as uid ") ||
		!strings.Contains(got, "run it as root, or as a member of the group root") {
		t.Errorf("the change was not refused: %s", got)
	}
	if calls := d.calls(); calls != "" {
		t.Errorf("the backend was called: %s", calls)
	}
}

func TestAMemberOfTheGroupMayChange(t *testing.T) {
	t.Parallel()
	const daemon = 1 // ID of the group daemon, which exists on every Linux
	many := []uint32{daemon}
	for g := range uint32(300) { // more than peerGroups reads at first
		many = append(many, 100000+g)
	}
	for name, c := range map[string]struct {
		gid    uint32
		groups []uint32
	}{
		"primary group":       {gid: daemon},
		"supplementary group": {gid: 65534, groups: []uint32{4, daemon}},
		"a member by one of many supplementary groups": {gid: 65534, groups: many},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &fake{}
			s := New(Options{
				Socket: filepath.Join(tempdir.New(t), "s"), Group: "daemon", Backend: d,
				Logger: testLog(t),
			})
			got := asUnprivileged(t, s, c.gid, c.groups...)
			if !strings.Contains(got, "resume <nil>") || !strings.HasPrefix(d.calls(), "resume by uid ") {
				t.Errorf("the change was refused: %s%s", got, d.calls())
			}
		})
	}
}

func TestWhoMayChange(t *testing.T) {
	t.Parallel()
	r := rules{self: 990, group: "quorumd", gid: 991, known: true}
	nogroup := rules{self: 990, group: "quorumd"}
	for name, c := range map[string]struct {
		rules rules
		peer  peer
		may   bool
	}{
		"root":                           {r, peer{uid: 0, gid: 0}, true},
		"the daemon's own user":          {r, peer{uid: 990, gid: 5}, true},
		"a member":                       {r, peer{uid: 1000, gid: 1000, groups: []uint32{27, 991}}, true},
		"a member by primary group":      {r, peer{uid: 1000, gid: 991}, true},
		"another user":                   {r, peer{uid: 1000, gid: 1000, groups: []uint32{27}}, false},
		"root's group is not root":       {r, peer{uid: 1000, gid: 0}, false},
		"group 0 is not the missing one": {nogroup, peer{uid: 1000, gid: 1000, groups: []uint32{0}}, false},
		"root without the group":         {nogroup, peer{uid: 0}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &fake{}
			s := New(Options{Backend: d, Logger: testLog(t)})
			s.rules = c.rules
			status, body := handle(t, s, "DELETE", "/v1/pause", "", c.peer)
			if may := status == http.StatusOK && d.calls() != ""; may != c.may {
				t.Errorf("got %d %s", status, body)
			}
			if status, body := handle(t, s, "GET", "/v1/history", "", c.peer); status != http.StatusOK {
				t.Errorf("may not read: %d %s", status, body)
			}
		})
	}
}

func TestAConnectionWithoutCredentialsMayNotChange(t *testing.T) {
	t.Parallel()
	d := &fake{}
	s := New(Options{Backend: d}) // the zero peer has UID 0, and so has the daemon in these rules
	r := httptest.NewRequest("DELETE", "http://quorumd/v1/pause", nil)
	w := httptest.NewRecorder()
	s.serve(w, r)
	if e := errorIn(t, w.Body.String()); w.Code != http.StatusForbidden || e.Code != control.CodeNotPermitted ||
		d.calls() != "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAMissingGroupIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := New(Options{
		Socket: filepath.Join(tempdir.New(t), "s"), Group: "no-such-group", Backend: &fake{},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "group=no-such-group") {
		t.Errorf("logged: %s", got)
	}
	if err := s.rules.check(accessChange, peer{uid: 1000}, true); err == nil ||
		strings.Contains(err.Error(), "no-such-group") {
		t.Errorf("the hint names a missing group: %v", err)
	}
}

func TestNamesComeFromTheAccountFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	group, passwd := filepath.Join(dir, "group"), filepath.Join(dir, "passwd")
	members := strings.Repeat("someone,", 20000) // over the scanner's default limit of 64 KiB per line
	write(t, group, "root:x:0:\nbad\n:x:5:\nquorumd:x:nine:\nquorumd:x:991:"+members+"\n")
	write(t, passwd, "root:x:0:0::/:\nalice:x:1000:1000::/:\nalias:x:1000:1000::/:\n")
	r, err := readRules("quorumd", group, passwd)
	if err != nil || !r.known || r.gid != 991 {
		t.Errorf("%v %d, %v", r.known, r.gid, err)
	}
	for uid, want := range map[uint32]string{0: "root", 1000: "uid 1000 (alice)", 1001: "uid 1001"} {
		if got := r.name(peer{uid: uid}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if r, err := readRules("quorumd", filepath.Join(dir, "none"), passwd); err == nil || r.known ||
		r.users[1000] != "alice" {
		t.Errorf("a missing file: %+v, %v", r, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
