// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/health"
)

// devices returns the devices below etcd's data as API values.
func devices(seen health.DevicesReading) []control.Device {
	var all []control.Device
	for _, d := range seen.Chain {
		shown := control.Device{
			Name: d.Name, Kind: d.Kind, Label: d.Label, On: d.On, Model: d.Model, Serial: d.Serial, Medium: d.Medium,
			Cache: d.Cache, Array: arrayOf(seen, d.Name),
		}
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

func arrayOf(seen health.DevicesReading, name string) *control.Array {
	for _, a := range seen.Arrays {
		if a.Name == name {
			return &control.Array{Level: a.Level, Missing: a.Missing, Failed: a.Failed, Doing: a.Doing, Done: a.Done}
		}
	}
	return nil
}
