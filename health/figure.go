// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"reflect"
)

// Figure is a number that may be missing. The zero value means not measured. As everywhere in this package, the reason
// for a missing reading is a stable text: it contains no numbers that change from one reading to the next.
type Figure struct {
	Value float64
	// Known means that there is a number; otherwise Absent is the reason, as a stable text.
	Known  bool
	Absent string
}

// notYet is the reason for a missing figure before the first measurement.
const notYet = "not measured yet"

// absent returns why there is no figure; empty if there is one.
func (f Figure) absent() string {
	if f.Known {
		return ""
	}
	return cmp.Or(f.Absent, notYet)
}

// NotAvailable returns a reading, for example a [MachineReading], in which everything is missing for the given reason.
func NotAvailable[T any](why string) (reading T) {
	setAbsent(reflect.ValueOf(&reading).Elem(), why)
	return reading
}

// setAbsent sets every field named Absent.
func setAbsent(v reflect.Value, why string) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case v.Type().Field(i).Name == "Absent":
			f.SetString(why)
		case f.Kind() == reflect.Struct:
			setAbsent(f, why)
		}
	}
}
