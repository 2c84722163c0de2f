// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Command failslow measures how well quorumd finds slow disks. It plays scenarios with several seeds in virtual time,
// with the real judgement (package health) and the real decisions (package policy). contrib/docs/slow-disk-benchmark.md
// describes it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/health"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "failslow:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("failslow", flag.ContinueOnError)
	seeds := flags.Int("seeds", 24, "runs per scenario")
	first := flags.Int("first", 1, "the first seed")
	pastsOf := flags.Int("pasts", 3, "number of different pasts that the seeds share, for each type of cluster")
	hours := flags.Float64("hours", 24, "virtual hours per run of a healthy cluster")
	only := flags.String("only", "", "scenarios, separated by commas; a prefix is enough")
	file := flags.String("json", "", "file for the result as JSON")
	verbose := flags.Bool("v", false, "print every run")
	check := flags.Bool("check", false, "fail if the figures are certain to miss a requirement")
	data := flags.String("perseus", "", "replay the PERSEUS data set in this directory instead")
	labels := flags.String("labels", "", "file that labels the slow drives of the data set")
	unit := flags.Duration("unit", time.Microsecond, "unit of the latencies in the data set")
	profile := flags.String("profile", "", "file for a CPU profile")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *data != "" {
		return replayPerseus(*data, *labels, *unit, *file)
	}
	list := chosen(scenarios(), *only)
	if len(list) == 0 || *seeds < 1 || *hours <= 0 || *pastsOf < 1 || flags.NArg() > 0 {
		return errors.New("nothing to run; see -help")
	}
	if *profile != "" {
		to, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer to.Close()
		if err := pprof.StartCPUProfile(to); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	debug.SetGCPercent(400) // the heap is small, so trade memory for less garbage collection
	before, lives := cpuTime(), newPasts(realJudge)
	lives.groups = *pastsOf
	outcomes, err := playAll(list, *first, *seeds, time.Duration(*hours*float64(time.Hour)), lives)
	if err != nil {
		return err
	}
	r := summarize(list, outcomes)
	r.Seeds, r.Hours = *seeds, *hours
	r.measured(outcomes, lives.hostDays(), cpuTime()-before)
	if *verbose {
		for _, o := range outcomes {
			details(os.Stdout, o)
		}
	}
	if *file != "" {
		if err := save(*file, r); err != nil {
			return err
		}
	}
	if err := r.print(os.Stdout); err != nil || !*check {
		return err
	}
	return r.missed()
}

// replayPerseus scores the judge with the PERSEUS data set, and saves the scores if a file is named.
func replayPerseus(dir, labels string, unit time.Duration, file string) error {
	p := &perseus{dir: dir, unit: unit, by: realJudge}
	var err error
	if p.labels, err = readLabels(labels); err != nil {
		return fmt.Errorf("cannot read the labels: %w", err)
	}
	all, err := p.run()
	if err != nil {
		return err
	}
	if file != "" {
		if err := save(file, all); err != nil {
			return err
		}
	}
	return printPerseus(os.Stdout, all)
}

// measured records how much time was simulated, and how much CPU time that took.
func (r *report) measured(outcomes []outcome, pastDays int, took time.Duration) {
	all := time.Duration(pastDays) * day
	for _, o := range outcomes {
		all += (o.measured + warmUp + comeBack) * time.Duration(o.hosts)
	}
	r.Years, r.Seconds = all.Hours()/year.Hours(), took.Seconds()
	r.PerYear = r.Seconds / r.Years
}

// chosen returns the scenarios whose name has one of the prefixes; all scenarios if only is empty.
func chosen(all []scenario, only string) []scenario {
	if only == "" {
		return all
	}
	var list []scenario
	for _, s := range all {
		for prefix := range strings.SplitSeq(only, ",") {
			if strings.HasPrefix(s.name, strings.TrimSpace(prefix)) {
				list = append(list, s)
				break
			}
		}
	}
	return list
}

// realJudge returns quorumd's own judge, with the checks that use the probe's writes.
func realJudge(t health.Thresholds) (judge, error) {
	return health.NewOf(t, "fsync", "cpu", "slower-than-peers", "slow-as-peers")
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
