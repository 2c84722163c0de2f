// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures the figures that contrib/docs claims. For each figure it also measures the usual way without
// quorumd ("the plain way"), on the same machine and in the same run. etcd and the agents are real, and run as plain
// processes on loopback.
//
// A row is declared in rows.go: what it measures, the units, the plain way and quorumd's way. The output is a table;
// with -json it also writes a file, and -compare compares two such files. In rows that measure the worst gap between
// writes, a load of the same rate also runs against a bystander etcd that does nothing else: the machine causes any
// gaps there.
//
// quorumd runs with its default times or, with -quick, in most rows with the demo's times. The settings differ from a
// real host's: a disk qualifies with 30 writes instead of 3000, and the limits on its fsync are loose, because many
// processes share one disk here. The disks of joining hosts are in memory if there is room: on a shared disk the copy
// of a database would slow down its source, which does not happen if each host has its own.
//
// It leaves no process behind and no file outside its own directory; the logs of a failed row stay there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.quorumd, "quorumd", "bin/quorumd", "path of quorumd")
	flag.StringVar(&o.etcd, "etcd", "", "path of etcd")
	flag.StringVar(&o.faultfs, "faultfs", "", "path of faultfs, which simulates slow disks")
	flag.StringVar(&o.exporter, "exporter", "", "path of node_exporter, for comparison with an idle agent")
	flag.StringVar(&o.dir, "dir", "", "working directory of the bench")
	flag.StringVar(&o.memory, "memory", "/dev/shm", "directory for the disks of joining hosts, if it has enough space")
	flag.StringVar(&o.rows, "rows", "", "rows to run, such as join or restart/3; all if empty")
	flag.StringVar(&o.sizes, "sizes", "", "sizes to run, such as 100MB or 5; all if empty")
	flag.IntVar(&o.rounds, "rounds", 1, "number of rounds; the table shows the median and the worst")
	flag.BoolVar(&o.quick, "quick", false, "use the demo's timings instead of quorumd's defaults")
	flag.DurationVar(&o.limit, "limit", 0, "total time limit; 0 for the sum of the rows' limits")
	flag.StringVar(&o.json, "json", "", "also write the results to this file")
	flag.BoolVar(&o.list, "list", false, "only list the rows")
	flag.BoolVar(&o.compare, "compare", false, "only compare two files that -json wrote: bench -compare OLD NEW")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Stdout, o, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	quorumd, etcd, exporter string
	faultfs, dir, memory    string
	rows, sizes, json       string
	rounds                  int
	limit                   time.Duration
	quick, list, compare    bool
}

func run(ctx context.Context, out io.Writer, o options, args []string) error {
	if o.compare {
		if len(args) != 2 {
			return errors.New("cannot compare: name two files that -json wrote, the older one first")
		}
		return compareFiles(out, args[0], args[1])
	}
	if len(args) > 0 {
		return fmt.Errorf("cannot start: unexpected argument %q", args[0])
	}
	if o.rounds < 1 {
		return fmt.Errorf("cannot start: -rounds is %d, but must be at least 1", o.rounds)
	}
	chosen, err := choose(rows(), o.rows, o.sizes)
	if err != nil {
		return err
	}
	if o.list {
		for _, r := range chosen {
			fmt.Fprintf(out, "%-18s %s\n", r.name, r.about)
		}
		return nil
	}
	b, err := newBench(o, out)
	if err != nil {
		return err
	}
	defer func() { _ = b.lock.Close() }() // the lock file is empty, so no data can be lost
	limit, err := b.checkSpace(chosen)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	report := newReport(o)
	if report.Etcd, err = b.version(ctx); err != nil {
		return err
	}
	failed := b.measure(ctx, chosen, &report)
	fmt.Fprintln(out)
	report.print(out)
	if o.json != "" {
		failed = errors.Join(failed, report.write(o.json))
	}
	return failed
}

// measure runs every row for the requested number of rounds. It completes a round of all rows before the next one, so
// that a temporary disturbance of the machine does not affect all rounds of a row. A row that fails does not stop the
// others.
func (b *bench) measure(ctx context.Context, chosen []row, report *Report) error {
	var failed []error
	for round := range b.rounds {
		for _, r := range chosen {
			if ctx.Err() != nil {
				failed = append(failed, fmt.Errorf("%s was not run: %w", r.name, context.Cause(ctx)))
				continue
			}
			if b.rounds > 1 {
				b.progress("%s, round %d of %d", r.name, round+1, b.rounds)
			}
			plain, quorumd, note, err := b.row(ctx, r)
			if err == nil {
				err = r.checkComplete(plain, quorumd, note)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", r.name, err))
			}
			report.add(r, plain, quorumd, note)
		}
	}
	return errors.Join(failed...)
}

// row runs both sides of a row. The note contains the reason why a side cannot run.
func (b *bench) row(ctx context.Context, r row) (plain, quorumd values, note string, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.bound)
	defer cancel()
	if r.both != nil {
		err = b.side(ctx, r, "both", func(s *site) (err error) {
			plain, quorumd, err = r.both(s)
			return err
		})
		note, err = b.missing(r, err)
		return plain, quorumd, note, err
	}
	err = b.side(ctx, r, "plain", func(s *site) (err error) {
		plain, err = r.plain(s)
		return err
	})
	note, err = b.missing(r, err)
	if err == nil {
		var not string
		err = b.side(ctx, r, "quorumd", func(s *site) (err error) {
			quorumd, err = r.quorumd(s)
			return err
		})
		if not, err = b.missing(r, err); not != "" {
			note = not
		}
	}
	return plain, quorumd, note, err
}

// missing returns what this machine lacks for a side. It returns any other error of the side as it is.
func (b *bench) missing(r row, failed error) (note string, err error) {
	var missing *unavailable
	if !errors.As(failed, &missing) {
		return "", failed
	}
	b.progress("%s: %v", r.name, missing)
	return missing.Error(), nil
}

// checkComplete returns an error if a figure was not measured. The plain side may lack the figures that only quorumd
// has and, if there is a note, all figures.
func (r row) checkComplete(plain, quorumd values, note string) error {
	if plain == nil && quorumd == nil && note != "" {
		return nil // neither side could run on this machine
	}
	for _, f := range r.figures {
		_, have := plain[f.name]
		_, ours := quorumd[f.name]
		if !ours || !have && !f.ours && note == "" {
			return fmt.Errorf("%q was not measured", f.name)
		}
	}
	return nil
}

// unavailable is the reason why a side cannot run on this machine. It does not count as a failure of the row.
type unavailable struct{ why string }

func (n *unavailable) Error() string { return n.why }

// choose returns the named rows, in the order of their declaration. A name is the full name of a row, or the part
// before the slash. Sizes select rows within the groups that have rows of such a size.
func choose(all []row, names, sizes string) ([]row, error) {
	wanted, fits := words(names), words(sizes)
	used := map[string]bool{}
	sized := map[string]bool{} // groups with a row of a requested size
	for _, r := range all {
		if group, size, _ := strings.Cut(r.name, "/"); slices.Contains(fits, size) {
			sized[group] = true
		}
	}
	var chosen []row
	for _, r := range all {
		group, size, _ := strings.Cut(r.name, "/")
		named := slices.Contains(wanted, r.name) || slices.Contains(wanted, group)
		used[r.name], used[group] = true, true
		if size != "" {
			used[size] = true
		}
		if (len(wanted) == 0 || named) && (!sized[group] || slices.Contains(fits, size)) {
			chosen = append(chosen, r)
		}
	}
	for _, word := range append(wanted, fits...) {
		if !used[word] {
			return nil, fmt.Errorf("unknown row or size %q; -list shows all", word)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("no row has that name and size; -list shows all")
	}
	return chosen, nil
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}
