// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dataSet writes a data set of one cluster with four hosts over two days. On the second day, the writes of one host
// take ten times as long.
func dataSet(t *testing.T) (dir, labels string) {
	t.Helper()
	dir = t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for host := range 4 {
		rng := source("data", host, 1)
		for day := range 2 {
			var text strings.Builder
			text.WriteString("ts,disk_id,throughput,latency\n")
			for row := range 24 * 60 * 4 {
				latency := 900 + 300*rng.Float64()
				if host == 2 && day == 1 {
					latency *= 10
				}
				fmt.Fprintf(&text, "%d,nvme0n1,1000,%.0f\n", 1_600_000_000/86400*86400+day*86400+row*15, latency)
			}
			text.WriteString("what,nvme0n1,1000,nonsense\n")
			write(fmt.Sprintf("cluster_A/host_%d/2020-09-%02d.csv", host, 13+day), text.String())
		}
	}
	write("slow.csv", "cluster,host_name,workload,disk_id\nA,host_2,oltp,nvme0n1\nA,host_2,oltp,nvme0n1\n")
	return dir, filepath.Join(dir, "slow.csv")
}

func TestTheLabelledDriveOfADataSetIsFound(t *testing.T) {
	t.Parallel()
	dir, file := dataSet(t)
	labels, err := readLabels(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := (&perseus{dir: dir, unit: 1000, labels: labels, by: realJudge}).run()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0] != (scored{Cluster: "A", Drives: 4, Days: 8, Slow: 1, Found: 1, Skipped: 8}) {
		t.Errorf("the scores are %+v", all)
	}
}

func TestAFileWithoutTheExpectedColumnsIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "slow.csv")
	if err := os.WriteFile(file, []byte("cluster,host\nA,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readLabels(file); err == nil || !strings.Contains(err.Error(), `no column "host_name"`) {
		t.Errorf("the error is %v", err)
	}
	if _, err := (&perseus{dir: dir, unit: 1, by: realJudge}).run(); err == nil {
		t.Error("a directory without clusters is accepted")
	}
}
