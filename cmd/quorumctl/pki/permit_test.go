// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"path/filepath"
	"testing"
	"time"
)

func TestNameConstraintsAreEnforcedAndInherited(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	if err := Create(dir, today(), "10.0.0.0/24", "fd00::/8", "example.com"); err != nil {
		t.Fatal(err)
	}
	a := reopen(t, dir, today())
	if _, err := Install(bundle(t, a, "n1.example.com", "10.0.0.1", "fd00::1"), place(t), today()); err != nil {
		t.Error(err)
	}
	outside := [][]string{{"n2.example.com", "10.0.1.2"}, {"n3.example.org", "10.0.0.3"}, {"n4", "10.0.0.4"}}
	for _, c := range outside {
		_, err := a.Host(c[0], c[1:], today())
		mustRefuse(t, err, "exclude a name or address")
	}
	if hosts, err := a.Hosts(); err != nil || len(hosts) != 1 {
		t.Errorf("a refused request has left a record: %v %v", hosts, err)
	}
	if err := a.Begin(false, today()); err != nil {
		t.Fatal(err)
	}
	for _, file := range caFiles() {
		c := a.rotation.next.of(file).cert
		if len(c.PermittedIPRanges) != 4 || len(c.PermittedDNSDomains) != 2 || !c.PermittedDNSDomainsCritical {
			t.Errorf("the new %s permits %v %v", file, c.PermittedIPRanges, c.PermittedDNSDomains)
		}
	}
	wide := filepath.Join(t.TempDir(), "pki")
	if err := Create(wide, today(), "10.0.0.0/24"); err != nil {
		t.Fatal(err)
	}
	b := reopen(t, wide, today())
	if err := b.Begin(false, today(), "10.0.0.0/16"); err != nil {
		t.Fatal(err)
	}
	b.cas = b.rotation.next
	if _, err := b.Host("n4", []string{"10.0.1.2"}, today().Add(time.Minute)); err != nil {
		t.Errorf("a new CA with wider constraints: %v", err)
	}
	mustRefuse(t, Create(filepath.Join(t.TempDir(), "pki"), today(), "10.0.0.1:80"), "neither an address range nor")
}
