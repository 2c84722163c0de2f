// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestEveryMetricThatAnAlertOrTheReadmeNamesExists(t *testing.T) {
	t.Parallel()
	m := newMetrics(nil, func() time.Duration { return 0 })
	described := make(chan *prometheus.Desc, 100)
	m.Describe(described)
	close(described)
	var names []string
	for d := range described {
		names = append(names, regexp.MustCompile(`quorumd_[a-z_]+`).FindString(d.String()))
	}
	for _, path := range []string{"../contrib/prometheus/quorumd.rules.yaml", "../README.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`quorumd_[a-z]+[a-z_]*[a-z]`).FindAllString(string(text), -1)
		if len(named) == 0 {
			t.Errorf("%s names no metric", path)
		}
		for _, name := range named {
			if !slices.Contains(names, name) {
				t.Errorf("%s names %s, which does not exist", path, name)
			}
		}
	}
}
