// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/health"
)

// devices returns the devices below etcd's data as API values.
func devices(seen health.DevicesReading) []control.Device {
	var all []control.Device
	for _, d := range seen.Chain {
		shown := control.Device{Device: d, Array: arrayOf(seen, d.Name)}
		if d.Errors.Known {
			n := uint64(d.Errors.Value)
			shown.Errors = &n
		}
		if t := d.Traffic; t.Known && t.Flushes > 0 {
			shown.FlushSeconds = t.FlushTime.Seconds() / float64(t.Flushes)
		}
		all = append(all, shown)
	}
	return all
}

func arrayOf(seen health.DevicesReading, name string) *health.Array {
	i := slices.IndexFunc(seen.Arrays, func(a health.Array) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &seen.Arrays[i]
}
