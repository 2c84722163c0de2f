// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "reflect"

// Changed returns the paths of the keys, such as "timing.lockTTL", in which two configurations differ, in the order of
// declaration. A section that only one of them has counts as one key.
func Changed(a, b Config) []string { return changed(reflect.ValueOf(a), reflect.ValueOf(b), "") }

func changed(a, b reflect.Value, path string) []string {
	var paths []string
	for _, k := range keysOf(a.Type(), path) {
		x, y := a.FieldByIndex(k.field.Index), b.FieldByIndex(k.field.Index)
		if _, is := k.section(); is && x.Kind() == reflect.Pointer && !x.IsNil() && !y.IsNil() {
			x, y = x.Elem(), y.Elem()
		}
		switch {
		case x.Kind() == reflect.Struct:
			paths = append(paths, changed(x, y, k.path)...)
		case !reflect.DeepEqual(x.Interface(), y.Interface()):
			paths = append(paths, k.path)
		}
	}
	return paths
}
