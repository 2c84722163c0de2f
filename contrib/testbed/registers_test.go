// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"testing"
	"time"
)

func TestAccessesThatNoOrderExplainsAreFound(t *testing.T) {
	t.Parallel()
	write := func(value string, from, to time.Duration) Access {
		return Access{Register: "r", Write: true, Value: value, Call: from, Return: to}
	}
	read := func(value string, from, to time.Duration) Access {
		return Access{Client: 1, Register: "r", Value: value, Call: from, Return: to}
	}
	lost := write("b", 3, 0)
	lost.Unknown = true
	for _, c := range []struct {
		what string
		all  []Access
		fits bool
	}{
		{"one after the other", []Access{read("", 0, 1), write("a", 1, 2), read("a", 3, 4)}, true},
		{"a read meanwhile sees either", []Access{write("a", 1, 5), read("", 2, 3), read("a", 4, 6)}, true},
		{"a write was lost", []Access{write("a", 1, 2), read("", 3, 4)}, false},
		{"an old value comes back", []Access{write("a", 1, 2), write("b", 3, 4), read("a", 5, 6)}, false},
		{"a value is read, and then the one before", []Access{
			write("a", 1, 2), write("b", 3, 9), read("b", 4, 5), read("a", 6, 7),
		}, false},
		{"what nobody wrote", []Access{write("a", 1, 2), read("c", 3, 4)}, false},
		{"an unknown write has taken effect late", []Access{
			write("a", 1, 2), lost, read("a", 5, 6), read("b", 7, 8),
		}, true},
		{"an unknown write never has", []Access{write("a", 1, 2), lost, read("a", 5, 6)}, true},
		{"an unknown write has come and gone", []Access{
			write("a", 1, 2), lost, read("b", 5, 6), read("a", 7, 8),
		}, false},
	} {
		if err := Linearizable(c.all); (err == nil) != c.fits {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func TestRegistersOfARealEtcdAreLinearizable(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 1, ClusterOptions{})
	r, err := StartRegisters(t.Context(), append(c.Endpoints(), c.Endpoints()...))
	if err != nil {
		t.Fatal(err)
	}
	Eventually(t, time.Minute, "both clients have written and read", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		seen := map[[2]any]int{}
		for _, a := range r.all {
			if !a.Unknown {
				seen[[2]any{a.Client, a.Write}]++
			}
		}
		return len(seen) == 4 && len(r.all) > 20
	})
	if err := Linearizable(r.Stop()); err != nil {
		t.Error(err)
	}
}
