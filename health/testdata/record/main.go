// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Program record records a machine second by second, as test data for package health:
//
//	go run ./health/testdata/record QUORUMCTL DIR DURATION >health/testdata/recorded.txt
//
// DIR is a directory on the probed disk. "12 direct 812" is a write of the direct lane in second 12 that took 812 µs,
// with an "!" during CPU starvation. "20 machine 61.5 0 4.2 1.1" are percentages: available memory, time stalled on
// memory, time in which a process waited for a CPU, and in which all waited for the disk. "-" means unknown.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/health/sensors"
)

func main() {
	if err := record(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cannot record:", err)
		os.Exit(1)
	}
}

func record(args []string) (err error) {
	if len(args) != 3 {
		return errors.New("want QUORUMCTL DIR DURATION")
	}
	long, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	probe, err := disk.StartProbe(disk.Options{
		Command: []string{args[0], "probe-disk"}, Dir: filepath.Join(args[1], ".record"), Target: args[1],
	})
	if err != nil {
		return err
	}
	defer probe.Close()
	out := bufio.NewWriter(os.Stdout)
	defer func() { err = errors.Join(err, out.Flush()) }()
	kernel, began := sensors.New(), disk.Monotonic()
	seconds := time.NewTicker(time.Second)
	defer seconds.Stop()
	for second := 1; disk.Monotonic()-began < long; second++ {
		<-seconds.C
		r := probe.Read()
		if r.Failure != nil {
			return fmt.Errorf("%s: %s", r.Failure.Op, r.Failure.Cause())
		}
		for _, s := range r.Samples {
			short := ""
			if s.Contaminated {
				short = "!"
			}
			at := int((s.End - began) / time.Second)
			fmt.Fprintf(out, "%d %s %d%s\n", at, s.Lane, s.Latency.Microseconds(), short)
		}
		if second%10 == 0 {
			m := kernel.Read()
			fmt.Fprintf(out, "%d machine %s %s %s %s\n", second, text(m.MemoryAvailable), text(m.MemoryStalled),
				text(m.ProcessorWaited), text(m.DiskWaited))
		}
	}
	return nil
}

func text(f health.Figure) string {
	if !f.Known {
		return "-"
	}
	return strconv.FormatFloat(f.Value, 'f', 2, 64)
}
