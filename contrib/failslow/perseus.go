// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

// perseus replays the public data set of the PERSEUS paper: latencies of drives in the clusters of a cloud provider. It
// expects the files DIR/cluster_X/host_N/YYYY-MM-DD.csv with the columns ts, disk_id, throughput and latency, and one
// file that labels the slow drives, with the columns cluster, host_name, workload and disk_id. Every row counts as one
// direct write. The policy plays no part, because these drives do not belong to voters.
type perseus struct {
	dir    string
	unit   time.Duration // unit of the latency column
	labels map[drive]bool
	by     newJudge
}

// drive identifies a drive of the data set.
type drive struct{ cluster, host, disk string }

func (d drive) compare(other drive) int {
	return cmp.Or(
		cmp.Compare(d.cluster, other.cluster), cmp.Compare(d.host, other.host), cmp.Compare(d.disk, other.disk),
	)
}

// scored is the score of a cluster.
type scored struct {
	Cluster string  `json:"cluster"`
	Drives  int     `json:"drives"`
	Days    float64 `json:"driveDays"`
	Slow    int     `json:"labelledSlow"`
	Found   int     `json:"found"`
	Others  int     `json:"othersWithFinding"`
	Skipped int     `json:"rowsSkipped"`
}

// readLabels reads the file that labels the slow drives. A drive that is listed twice counts once.
func readLabels(file string) (map[drive]bool, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	labels := map[drive]bool{}
	err = table(in, []string{"cluster", "host_name", "disk_id"}, func(row []string) bool {
		labels[drive{strings.TrimPrefix(row[0], "cluster_"), row[1], row[2]}] = true
		return true
	})
	return labels, err
}

// table calls each with the named columns of every row until each returns false.
func table(in io.Reader, columns []string, each func(row []string) bool) error {
	rows := csv.NewReader(in)
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	header, err := rows.Read()
	if err != nil {
		return fmt.Errorf("cannot read the names of the columns: %w", err)
	}
	header = slices.Clone(header)
	at := make([]int, len(columns))
	for i, name := range columns {
		if at[i] = slices.Index(header, name); at[i] < 0 {
			return fmt.Errorf("it has no column %q, but %q", name, header)
		}
	}
	wanted := make([]string, len(columns))
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i, column := range at {
			if wanted[i] = ""; column < len(row) {
				wanted[i] = row[column]
			}
		}
		if !each(wanted) {
			return nil
		}
	}
}

// run scores every cluster.
func (p *perseus) run() ([]scored, error) {
	dirs, err := filepath.Glob(filepath.Join(p.dir, "cluster_*"))
	if err != nil || len(dirs) == 0 {
		return nil, errors.Join(err, fmt.Errorf("there is no cluster_* in %s", p.dir))
	}
	slices.Sort(dirs)
	var all []scored
	for _, dir := range dirs {
		s, err := p.cluster(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// replayed is a drive of the data set while it is replayed.
type replayed struct {
	judge judge
	rows  []disk.Sample // the drive's remaining rows of the current day
	state health.Assessment
	bad   bool // at least once, the drive had a finding that rules out leading
	slow  bool // the data set labels the drive as slow
}

// cluster replays a cluster day by day.
func (p *perseus) cluster(dir string) (scored, error) {
	s := scored{Cluster: strings.TrimPrefix(filepath.Base(dir), "cluster_")}
	files, err := filepath.Glob(filepath.Join(dir, "host_*", "*.csv"))
	if err != nil || len(files) == 0 {
		return s, errors.Join(err, fmt.Errorf("there is no host_*/*.csv in %s", dir))
	}
	days := map[string][]string{}
	for _, f := range files {
		days[filepath.Base(f)] = append(days[filepath.Base(f)], f)
	}
	drives := map[drive]*replayed{}
	for _, day := range slices.Sorted(maps.Keys(days)) {
		for _, file := range days[day] {
			if err := p.read(file, s.Cluster, drives, &s); err != nil {
				return s, fmt.Errorf("cannot read %s: %w", file, err)
			}
		}
		s.Days += replayDay(drives)
	}
	s.Drives = len(drives)
	for _, d := range drives {
		switch {
		case d.slow && d.bad:
			s.Slow, s.Found = s.Slow+1, s.Found+1
		case d.slow:
			s.Slow++
		case d.bad:
			s.Others++
		}
	}
	return s, nil
}

// perseusEvery is the time between two rows.
const perseusEvery = 15 * time.Second

// read adds a file's rows to the drives. It skips rows without a plausible time or latency.
func (p *perseus) read(file, cluster string, drives map[drive]*replayed, s *scored) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	host := filepath.Base(filepath.Dir(file))
	var failed error
	err = table(in, []string{"ts", "disk_id", "latency"}, func(row []string) bool {
		at, err1 := strconv.ParseFloat(row[0], 64)
		latency, err2 := strconv.ParseFloat(row[2], 64)
		took := latency * float64(p.unit)
		if err1 != nil || err2 != nil || !(at > 0 && at < 1e10) || !(took > 0 && took < float64(time.Hour)) {
			s.Skipped++
			return true
		}
		id := drive{cluster, host, row[1]}
		d := drives[id]
		if d == nil {
			d = &replayed{slow: p.labels[id]}
			limits := health.DefaultThresholds()
			limits.DirectInterval = perseusEvery
			if d.judge, failed = p.by(limits); failed != nil {
				return false
			}
			drives[id] = d
		}
		end := time.Duration(math.Round(at) * float64(time.Second))
		d.rows = append(d.rows, disk.Sample{End: end, Latency: time.Duration(took)})
		return true
	})
	return errors.Join(err, failed)
}

// replayDay feeds the rows of one day to the judges of their drives, in the order of time, and returns the number of
// drive-days.
func replayDay(drives map[drive]*replayed) float64 {
	first, last := time.Duration(math.MaxInt64), time.Duration(0)
	rows := 0
	for _, d := range drives {
		slices.SortStableFunc(d.rows, func(a, b disk.Sample) int { return int((a.End - b.End) / time.Second) })
		rows += len(d.rows)
		if n := len(d.rows); n > 0 {
			first, last = min(first, d.rows[0].End), max(last, d.rows[n-1].End)
		}
	}
	order := slices.SortedFunc(maps.Keys(drives), drive.compare)
	for now := first; now <= last && rows > 0; now += perseusEvery {
		for _, id := range order {
			d := drives[id]
			n := 0
			for n < len(d.rows) && d.rows[n].End <= now {
				n++
			}
			in := health.Input{Now: now, Member: true, Disk: health.DiskReading{Samples: d.rows[:n], Alive: true}}
			withPeers(&in, id, order, drives)
			d.state, _ = d.judge.Observe(in)
			d.rows = d.rows[n:]
			d.bad = d.bad || d.state.Gates&health.Leadership != 0 && d.state.State != health.Unknown
		}
	}
	for _, d := range drives {
		d.rows = nil
	}
	return (time.Duration(rows) * perseusEvery).Hours() / 24
}

// withPeers adds the latencies of the other drives of the cluster, as if each had just published them.
func withPeers(in *health.Input, id drive, all []drive, drives map[drive]*replayed) {
	in.Peers = health.PeerWritesReading{Known: true, Self: id.host}
	in.Wall = time.Unix(0, 0).Add(in.Now)
	for _, other := range all {
		if d := drives[other]; other != id {
			in.Peers.All = append(in.Peers.All, health.PeerWrites{
				Host: other.host + "/" + other.disk, P50: d.state.Writes.P50, P90: d.state.Writes.P90,
				Tails: d.state.Writes.Tails,
			})
		}
	}
}

// printPerseus writes the table, with totals with and without cluster F, in which all drives of all hosts are slow at
// once.
func printPerseus(w io.Writer, all []scored) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "cluster\tdrives\tdrive-days\tfound\t95 %\tothers with a finding\tper drive-year\trows skipped")
	line := func(s scored) {
		low, high := wilson(s.Found, s.Slow)
		few, many := poisson(s.Others)
		years := s.Days / 365.25
		fmt.Fprintf(out, "%s\t%d\t%.0f\t%d of %d\t%.2f to %.2f\t%d\t%.3g (%.3g to %.3g)\t%d\n", s.Cluster, s.Drives,
			s.Days, s.Found, s.Slow, low, high, s.Others, float64(s.Others)/years, few/years, many/years, s.Skipped)
	}
	total, without := scored{Cluster: "all"}, scored{Cluster: "all without F"}
	for _, s := range all {
		line(s)
		total.sum(s)
		if s.Cluster != "F" {
			without.sum(s)
		}
	}
	line(total)
	line(without)
	return out.Flush()
}

func (s *scored) sum(other scored) {
	s.Drives, s.Days, s.Slow = s.Drives+other.Drives, s.Days+other.Days, s.Slow+other.Slow
	s.Found, s.Others, s.Skipped = s.Found+other.Found, s.Others+other.Others, s.Skipped+other.Skipped
}
