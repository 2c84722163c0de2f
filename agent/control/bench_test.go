// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// BenchmarkStatusOfAHundredHosts measures a status request from connecting to the decoded document.
func BenchmarkStatusOfAHundredHosts(b *testing.B) {
	s := example[Status]()
	for i := range 100 {
		h := example[HostRecord]()
		h.Name = fmt.Sprintf("n%d", i)
		s.Hosts = append(s.Hosts, h)
	}
	srv := NewServer(
		Options{Socket: filepath.Join(tempdir.New(b), "s"), Backend: &desk{status: func() Status { return s }}},
	)
	c := Dial(serving(b, srv))
	for b.Loop() {
		if _, err := c.Status(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
