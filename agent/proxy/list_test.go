// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestImplausibleListIsRefused(t *testing.T) {
	t.Parallel()
	voter := func(address string) string { return fmt.Sprintf(`{"name":"n","address":%q,"use":true}`, address) }
	many := make([]string, maxVoters+1)
	for i := range many {
		many[i] = voter(fmt.Sprintf("h:%d", i+1))
	}
	of := func(voters ...string) string { return `{"version":1,"voters":[` + strings.Join(voters, ",") + `]}` }
	for name, text := range map[string]string{
		"empty":            "",
		"torn":             of(voter("h:1"))[:20],
		"not a list":       `["version"]`,
		"null":             "null",
		"newer":            strings.Replace(of(voter("h:1")), `"version":1`, `"version":2`, 1),
		"no voter":         of(),
		"none to use":      of(`{"address":"h:1"}`),
		"too many":         of(many...),
		"twice":            of(voter("h:1"), voter("h:1")),
		"no port":          of(voter("h")),
		"port 0":           of(voter("h:0")),
		"port too high":    of(voter("h:65536")),
		"a port by name":   of(voter("h:ssh")),
		"no host":          of(voter(":1")),
		"escape sequences": of(`{"name":"\u001b[2J","address":"h:1","use":true}`),
		"a long name":      of(fmt.Sprintf(`{"name":%q,"address":"h:1","use":true}`, strings.Repeat("n", maxText+1))),
		"too large":        of(voter("h:1")) + strings.Repeat(" ", MaxListSize),
	} {
		if l, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: accepted as %+v", name, l)
		}
	}
	if _, err := Parse([]byte(of(voter("192.0.2.1:2379"), voter("[2001:db8::1]:2379")))); err != nil {
		t.Errorf("a valid list is refused: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	text, err := List{Voters: []Voter{{Member: "1", Name: "n1", Address: "h:1", Use: true}}}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		again, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(again); err != nil {
			t.Errorf("%q was accepted, but its encoding %q is not: %v", text, again, err)
		}
	})
}

func TestAddressPrefersAURLThatOtherHostsReach(t *testing.T) {
	t.Parallel()
	for want, urls := range map[string][]string{
		"192.0.2.1:2379":     {"http://localhost:2379", "http://192.0.2.1:2379", "http://192.0.2.9:2379"},
		"127.0.0.1:2379":     {"http://127.0.0.1:2379"},
		"[2001:db8::1]:2379": {"unix:///run/etcd.sock", "https://[2001:db8::1]:2379"},
		"":                   {"unix:///run/etcd.sock", "://", "http://nowhere"},
	} {
		if got := Address(urls); got != want {
			t.Errorf("%q: %q, want %q", urls, got, want)
		}
	}
}

// TestListThatIsNotARegularFileIsRefused covers files of other types, because a different user can create anything at
// the path of the list.
func TestListThatIsNotARegularFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	good := path("good")
	write(t, good, List{Voters: []Voter{{Name: "n1", Address: "h:1", Use: true}}})
	for _, err := range []error{
		os.Symlink(good, path("link")), unix.Mkfifo(path("pipe"), 0o600), os.Mkdir(path("directory"), 0o700),
		os.WriteFile(path("huge"), nil, 0o600), os.Truncate(path("huge"), 1<<40), os.Symlink("/dev/zero", path("zero")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"link", "pipe", "directory", "huge", "zero"} {
		f := newFollower(path(name), "", since())
		if l, _, err := f.look(); err == nil {
			t.Errorf("%s was read as %+v", name, l)
		}
		if _, news, err := f.look(); err == nil || news {
			t.Errorf("%s is reported as news a second time: %v", name, err)
		}
	}
	if l, news, err := newFollower(good, "", since()).look(); err != nil || !news || len(l.Voters) != 1 {
		t.Errorf("a regular file: %+v, news %v, %v", l, news, err)
	}
}

func TestLastValidListIsKeptForTheNextBoot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, kept := filepath.Join(dir, "list"), filepath.Join(dir, "kept")
	write(t, path, List{Voters: []Voter{{Name: "n1", Address: "h:1", Use: true}}})
	f := newFollower(path, kept, since())
	if _, _, err := f.look(); err != nil {
		t.Fatal(err)
	}
	testbed.Eventually(t, bound, "the list to be saved", func() bool { return !f.saving.Load() })
	if err := os.WriteFile(path, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, news, err := f.look(); err == nil || !news {
		t.Fatalf("garbage: %v, %v", news, err)
	}
	l, err := newFollower(path, kept, since()).saved()
	if err != nil || len(l.Voters) != 1 || l.Voters[0].Address != "h:1" {
		t.Errorf("%+v was saved: %v", l, err)
	}
}

func since() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// write writes a list as the agent does: a new file replaces the old one.
func write(t testing.TB, path string, l List) {
	t.Helper()
	text, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
