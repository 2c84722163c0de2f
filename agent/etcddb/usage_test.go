// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcddb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"
)

// put is a change of a key. A deletion has no value.
type put struct {
	key     string
	value   int // bytes
	deleted bool
}

// database writes a database with these changes, and opens it.
func database(t *testing.T, changes []put) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: testPage, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket([]byte(Meta)); err != nil {
			return err
		}
		keys, err := tx.CreateBucket([]byte(Keys))
		for i := 0; err == nil && i < len(changes); i++ {
			c, at := changes[i], RevisionKey(int64(i)+2)
			value := protowire.AppendBytes(protowire.AppendTag(nil, keyField, protowire.BytesType), []byte(c.key))
			if c.deleted {
				at = append(at, 't')
			} else {
				value = protowire.AppendBytes(protowire.AppendTag(value, 5, protowire.BytesType), make([]byte, c.value))
			}
			err = keys.Put(at, value)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func TestUsageNamesThePrefixesThatFillADatabase(t *testing.T) {
	t.Parallel()
	file := database(t, []put{
		{"/registry/events/default/a", 5000, false},
		{"/registry/events/default/b", 5000, false},
		{"/registry/events/default/a", 0, true}, // 5000 bytes of history
		{"/registry/pods/default/a", 1000, false},
		{"/registry/pods/default/a", 3000, false},
		{"/patroni/main/leader", 10, false},
		{"plain", 10, false},
		{"/x", 10, false},
	})
	u, err := UsageOf(t.Context(), file, 2)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, p := range u.Prefixes {
		fmt.Fprintf(&got, "%s %d keys, %d changes, %d k live, %d k history\n", p.Prefix, p.Keys, p.Changes, p.Live/1000,
			p.History/1000)
	}
	const want = `/registry/events/ 1 keys, 3 changes, 5 k live, 5 k history
/registry/pods/ 1 keys, 2 changes, 3 k live, 1 k history
/patroni/main/ 1 keys, 1 changes, 0 k live, 0 k history
 1 keys, 1 changes, 0 k live, 0 k history
/ 1 keys, 1 changes, 0 k live, 0 k history
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
	if u.Live < 8000 || u.History < 6000 || u.Size < u.Live+u.History || u.Free < 0 || u.Omitted != (PrefixUsage{}) {
		t.Errorf("%+v", u)
	}
}

func TestUsageOfManyPrefixesNamesTheLargestAndAddsUpTheOthers(t *testing.T) {
	t.Parallel()
	const small = 300
	var changes []put
	for i := range small {
		changes = append(changes, put{fmt.Sprintf("/a/%d/x", i), i % 50, false})
	}
	file := database(t, append(changes, put{"/a/last/x", 5000, false}))
	for _, most := range []int{prefixesCounted, 100} {
		var u Usage
		err := view(file, func(tx *bbolt.Tx, _ int64) (err error) {
			u, err = usage(t.Context(), tx, 2, most)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		sum := u.Omitted
		for _, p := range u.Prefixes {
			sum.add(p)
		}
		if len(u.Prefixes) != prefixesShown || sum.Keys != small+1 || sum.Live != u.Live {
			t.Errorf("limit %d: %d prefixes, %+v of %+v", most, len(u.Prefixes), sum, u)
		}
		if named := u.Prefixes[0].Prefix == "/a/last/"; named != (most > small) {
			t.Errorf("limit %d: the largest prefix is %+v", most, u.Prefixes[0])
		}
	}
}

func TestUsageOfADatabaseThatEtcdHasOpenIsRefusedSoon(t *testing.T) {
	t.Parallel()
	file := database(t, []put{{"/a/b/c", 10, false}})
	db, err := bbolt.Open(file.Name(), 0o600, nil) // takes the lock as etcd does
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := UsageOf(t.Context(), file, 2); !errors.Is(err, ErrInUse) {
		t.Errorf("%v", err)
	}
}

func TestPrefixHasTheFirstPartsOfAKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key   string
		depth int
		want  string
	}{
		{"/registry/pods/default/a", 1, "/registry/"},
		{"/registry/pods/default/a", 2, "/registry/pods/"},
		{"/registry/pods/default/a", 8, "/registry/pods/default/"},
		{"a/b/c", 1, "a/"},
		{"a/b/c", 2, "a/b/"},
		{"a", 2, ""},
		{"", 2, ""},
		{"/", 2, "/"},
		{"//", 2, "//"},
		{"/a", 2, "/"},
		{"\xff/\xfe/", 1, "\uFFFD/"},
		{strings.Repeat("a", 200) + "/", 1, strings.Repeat("a", prefixBytes)},
	} {
		if got := prefixOf([]byte(c.key), c.depth); got != c.want {
			t.Errorf("%q at depth %d: %q, want %q", c.key, c.depth, got, c.want)
		}
	}
}

func TestUsageOfADamagedDatabaseIsAnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, []byte("not a database"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := UsageOf(t.Context(), file, 2); err == nil || !strings.Contains(err.Error(), ErrDamaged.Error()) {
		t.Errorf("%v", err)
	}
}
