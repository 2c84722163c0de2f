// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestExcludedVoterOfTheKeptListIsUsedIfNoOtherAnswers(t *testing.T) {
	t.Parallel()
	a, b := serve(t, "n1"), serve(t, "n2")
	a.kill()
	kept := filepath.Join(t.TempDir(), "kept")
	write(t, kept, List{Voters: []Voter{a.voter(true), b.voter(false)}})
	f := run(t, func(o *Options) { o.Kept = kept })
	if _, name := f.client(t); name != "n2" {
		t.Errorf("%q answers, want n2, as the age of the list is unknown", name)
	}
	f.writeList(t, a.voter(true), b.voter(false))
	testbed.Eventually(t, bound, "the list to be current", func() bool { return !strings.Contains(f.Status(), "old") })
}

func TestAgeOfAListIsTheAgeOfItsFileAndNeverNegative(t *testing.T) {
	t.Parallel()
	for written, want := range map[time.Duration]bool{
		0: false, -staleAfter / 2: false, -2 * staleAfter: true, 1000 * time.Hour: false,
	} {
		path := filepath.Join(t.TempDir(), "list")
		write(t, path, List{Voters: []Voter{{Name: "n1", Address: "h:1", Use: true}}})
		at := time.Now().Add(written)
		must(t, os.Chtimes(path, at, at))
		f := newFollower(path, "", since())
		_, _, err := f.look()
		must(t, err)
		if f.old() != want || f.age() < 0 || f.age() > max(0, -written)+bound {
			t.Errorf("written at now %+v: age %v, old: %v", written, f.age(), f.old())
		}
	}
}

func TestHungDiskDoesNotDelayNewLists(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "list")
	f := newFollower(path, path+"-kept", since())
	recovered := make(chan struct{})
	f.write = func(string, []byte, os.FileMode, bool) error {
		<-recovered
		return nil
	}
	for _, name := range []string{"n1", "n2"} {
		write(t, path, List{Voters: []Voter{{Name: name, Address: "h:1", Use: true}}})
		if l, news, err := f.look(); err != nil || !news || l.Voters[0].Name != name || !f.saving.Load() {
			t.Errorf("%s: %+v, %v, %v", name, l, news, err)
		}
	}
	close(recovered)
	testbed.Eventually(t, bound, "the list to be saved", func() bool { return !f.saving.Load() })
}

func TestListThatDiffersOnlyInRevisionIsNotSavedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, kept := filepath.Join(dir, "list"), filepath.Join(dir, "kept")
	look := func(f *follower, revision int64, address string) os.FileInfo {
		write(t, path, List{Revision: revision, Voters: []Voter{{Name: "n1", Address: address, Use: true}}})
		_, news, err := f.look()
		must(t, err)
		if !news {
			t.Errorf("revision %d is not reported as news", revision)
		}
		testbed.Eventually(t, bound, "the list to be saved", func() bool { return !f.saving.Load() })
		info, err := os.Stat(kept)
		must(t, err)
		return info
	}
	f := newFollower(path, kept, since())
	first := look(f, 1, "h:1")
	if !os.SameFile(first, look(f, 2, "h:1")) {
		t.Error("the list was saved again")
	}
	f = newFollower(path, kept, since())
	_, err := f.saved()
	must(t, err)
	if !os.SameFile(first, look(f, 3, "h:1")) {
		t.Error("the list was saved again after a start")
	}
	if os.SameFile(first, look(f, 4, "h:2")) {
		t.Error("a list with other content was not saved")
	}
}
