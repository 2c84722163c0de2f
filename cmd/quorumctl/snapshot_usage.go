// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/etcddb"
)

// maxPrefixDepth is the maximum value of --depth.
const maxPrefixDepth = 8

func (a *app) snapshotUsageCommand() *cobra.Command {
	cmd := a.prints(&cobra.Command{
		Use:   "usage FILE",
		Short: "Show which keys fill a database",
		Long: "Show which prefixes of keys take the most space, in a file from \"etcdctl snapshot save\" or the\n" +
			"member/snap/db of a stopped etcd. LIVE is the size of the newest values with their keys, HISTORY\n" +
			"that of older and deleted ones. A compaction with a defragmentation frees most of the history.",
		Example: examples("quorumctl snapshot usage /root/etcd.db", "quorumctl snapshot usage /root/etcd.db --depth 3"),
		Args:    cobra.ExactArgs(1),
	}, printed{name: "database-usage", of: etcddb.Usage{}})
	depth := cmd.Flags().Int("depth", 2, "`number` of parts of a key's name, up to 8, that form the prefix")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *depth < 1 || *depth > maxPrefixDepth {
			return usage(cmd.CommandPath()+" --help", "--depth must be a number from 1 to %d", maxPrefixDepth)
		}
		file, err := openDatabase(args[0])
		if err != nil {
			return cannot("read "+args[0], err)
		}
		defer file.Close() // the file was only read, so no data can be lost
		found, err := inspectFile(cmd.Context(), file, strconv.Itoa(*depth))
		if err != nil {
			return cannot("read "+args[0], err)
		}
		return a.emit(*found.Usage, func(p *page) { writeUsage(p, *found.Usage) })
	}
	return cmd
}

func writeUsage(p *page, u etcddb.Usage) {
	size := func(bytes int64) string { return display.Size(float64(bytes)) }
	p.line("%s: %s live, %s history, %s free", size(u.Size), size(u.Live), size(u.History), size(u.Free))
	p.line("")
	t := table{head: []string{"LIVE", "HISTORY", "KEYS", "CHANGES", "PREFIX"}}
	add := func(of etcddb.PrefixUsage, name string) {
		t.add(cells(size(of.Live), size(of.History), strconv.FormatInt(of.Keys, 10),
			strconv.FormatInt(of.Changes, 10), name)...)
	}
	for _, of := range u.Prefixes {
		name := of.Prefix
		if name == "" {
			name = "(keys without /)"
		}
		add(of, name)
	}
	if u.Omitted.Changes > 0 {
		add(u.Omitted, "(all others)")
	}
	p.table(t)
}
