// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

// BenchmarkDecide measures decisions at rest, on a dead voter, in a join and in maintenance.
func BenchmarkDecide(b *testing.B) {
	for name, v := range map[string]View{
		"rest": quietView(), "dead": deadView(), "join": joinView(), "maintenance": downView(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Decide(v)
			}
		})
	}
}
