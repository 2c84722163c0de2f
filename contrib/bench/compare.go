// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

func compareFiles(out io.Writer, before, after string) error {
	older, err := readReport(before)
	if err != nil {
		return err
	}
	newer, err := readReport(after)
	if err != nil {
		return err
	}
	compare(out, older, newer)
	return nil
}

// compare prints the figures of both reports and their change, with quorumd and then without it. If both sides have
// changed alike, the machine is the cause.
func compare(out io.Writer, older, newer Report) {
	if older.Machine != newer.Machine {
		fmt.Fprintf(out, "different machine: was %+v, now %+v\n", older.Machine, newer.Machine)
	}
	if older.Etcd != newer.Etcd {
		fmt.Fprintf(out, "different etcd: was %s, now %s\n", older.Etcd, newer.Etcd)
	}
	if older.Clocks != newer.Clocks {
		fmt.Fprintf(out, "different quorumd timings: was %s, now %s\n", older.Clocks, newer.Clocks)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ROW\tFIGURE\tBEFORE\tNOW\tCHANGE\tPLAIN BEFORE\tNOW\tCHANGE")
	for _, now := range newer.Rows {
		i := slices.IndexFunc(older.Rows, func(r Result) bool { return r.Row == now.Row })
		if i < 0 {
			continue
		}
		name := now.Row
		for _, m := range now.Figures {
			j := slices.IndexFunc(older.Rows[i].Figures, func(o Measured) bool {
				return o.Name == m.Name && o.Unit == m.Unit
			})
			if j < 0 {
				continue
			}
			was := older.Rows[i].Figures[j]
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, m.Name,
				was.show(was.Quorumd), m.show(m.Quorumd), change(was.Quorumd, m.Quorumd),
				was.show(was.Plain), m.show(m.Plain), change(was.Plain, m.Plain))
			name = ""
		}
	}
	_ = table.Flush() // writing to a terminal does not fail, and the reader of a pipe may have exited
	printUnmatched(out, "only before", older, newer)
	printUnmatched(out, "only now", newer, older)
}

// printUnmatched prints the rows that only one of the reports contains.
func printUnmatched(out io.Writer, what string, has, lacks Report) {
	for _, r := range has.Rows {
		if !slices.ContainsFunc(lacks.Rows, func(o Result) bool { return o.Row == r.Row }) {
			fmt.Fprintf(out, "%s: %s\n", what, r.Row)
		}
	}
}

// change returns the relative change from one median to the other.
func change(before, now []float64) string {
	switch {
	case len(before) == 0 || len(now) == 0:
		return "–"
	case median(before) == median(now):
		return "same"
	case median(before) == 0:
		return "from 0"
	}
	return fmt.Sprintf("%+.0f %%", 100*(median(now)/median(before)-1))
}
