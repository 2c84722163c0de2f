// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly || faultfs

package e2e

import (
	"slices"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// listening returns the addresses on which the etcds listen for clients, bypassing the proxies.
func (w *world) listening() (all []string) {
	for _, h := range w.hosts {
		all = append(all, h.Options.ListenClientURL)
	}
	return all
}

func unknown(all []testbed.Access) int {
	return len(slices.DeleteFunc(slices.Clone(all), func(a testbed.Access) bool { return !a.Unknown }))
}
