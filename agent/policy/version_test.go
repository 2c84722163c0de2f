// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestWhichVersionsAreSafeAndWhichAreOlder(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"2.3.8": false, "3.4.99": false, "3.5.30": false, "3.5.31": true, "3.6.11": false, "3.6.12": true,
		"3.7.0": true, "3.7.99": true, "3.8.0": false, "4.0.0": false, "2.9.99": false, "3.1.0": false,
	} {
		if got := ParseVersion(text).Safe(); got != want {
			t.Errorf("%s is safe: %v", text, got)
		}
	}
	for text, want := range map[string]bool{
		"2.3.8": true, "3.4.23": true, "3.7.99": true, "3.8.0": false, "3.10.0": false, "4.0.0": false,
	} {
		if got := ParseVersion(text).Tested(); got != want {
			t.Errorf("%s is tested: %v", text, got)
		}
	}
	order := []string{"2.9.9", "3.4.99", "3.5.3", "3.5.31", "3.6.0", "4.0.0"}
	for i, a := range order {
		for k, b := range order {
			if got := ParseVersion(a).Less(ParseVersion(b)); got != (i < k) {
				t.Errorf("%s is older than %s: %v", a, b, got)
			}
		}
	}
	for _, c := range []struct {
		own, lowest string
		want        bool
	}{
		{"3.6.1", "3.6.9", true},
		{"3.6.1", "3.5.9", true},
		{"3.6.1", "3.4.9", false},
		{"3.5.1", "3.6.9", false},
		{"4.0.0", "3.0.0", false},
	} {
		if got := ParseVersion(c.own).mayJoin(ParseVersion(c.lowest)); got != c.want {
			t.Errorf("%s may join %s: %v", c.own, c.lowest, got)
		}
	}
	for text, want := range map[string]string{"3.6.16": "3.6.16", "": "unknown", "not decided": "unknown"} {
		if got := ParseVersion(text).String(); got != want {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}
