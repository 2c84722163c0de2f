// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// History is what a host has learned about its own writes over the past week: how long they usually take, and for how
// long they have been slower, by the hour of the day. It also records how fast the drives wear. Unlike a
// [Judge.Snapshot] it stays valid after a reboot, so the caller keeps it in a directory that survives reboots. The zero
// value is an empty history.
//
// A spell is a period in which writes took at least a certain multiple of the usual time: see [Rungs].
//
// A history does not rely on a correct clock: a day ends only when the wall clock shows another date and the day has
// enough measurements. So a clock that jumps neither discards days nor adds empty ones.
type History struct {
	Version int `json:"version"`
	// Disks are the identities of the disks that the history is about; empty if unknown.
	Disks []string `json:"disks,omitempty"`
	Days  []Day    `json:"days,omitempty"` // at most [HistoryDays] days, oldest first; the last one is today
	// Wear is how the drives of the disks wear; at most [MaxDisks] drives.
	Wear []DriveWear `json:"wear,omitempty"`
}

// Day is one day of a [History].
type Day struct {
	// Date is the date on which the day began, in days since 1970, in UTC.
	Date int64 `json:"date"`
	// Minutes counts the measured minutes by their median write time, in buckets of an eighth of an octave: see
	// bucketOf.
	Minutes map[int]int `json:"minutes,omitempty"`
	// Tenths counts the same minutes by the 90th percentile of their write times.
	Tenths map[int]int `json:"tenths,omitempty"`
	// Spells contains the longest spell in seconds, by the hour in UTC in which it began and by its rung: see [Rungs].
	Spells map[int]map[int]int `json:"spells,omitempty"`
	// Found contains the same for spells that lasted long enough for a finding, or ended during one. They are a habit
	// of the disk only if they recur: see scheduled.
	Found map[int]map[int]int `json:"found,omitempty"`
	// Slow contains the longest time in seconds for which the disk was SLOW before it became fast again by itself, by
	// the hour in UTC in which it became SLOW.
	Slow map[int]int `json:"slow,omitempty"`
	// Tails counts the slow episodes.
	Tails int `json:"tails,omitempty"`
}

const (
	historyVersion = 1
	historyBytes   = 64 << 10
	// HistoryDays is the maximum number of days in a history: a week, and today.
	HistoryDays = 8
	// historyReady is the number of measured minutes that a comparison with the past needs.
	historyReady = 30
	// dayFewest is how many minutes must be measured before a day can end.
	dayFewest = 6 * 60
	dayMost   = 48 * 60
	// diskMost bounds the length of a disk's identity.
	diskMost = 64
	// spellLongest bounds a learned spell.
	spellLongest = 40 * time.Minute
	// The spells in [Day.Found] count as a scheduled job, not as a fault, if they began at about the same hour on
	// scheduleDays days. A day with such spells in more than scheduleHours hours does not count. scheduleLongest is the
	// longest such spell.
	scheduleDays, scheduleHours = 3, 4
	scheduleLongest             = 2 * time.Hour
	// A disk that is SLOW for at least slowCounts in more than slowHours hours of a day is broken.
	slowCounts, slowHours = 5 * time.Minute, 8

	bucketLeast = 8 * time.Microsecond
	bucketsOf   = 8 // buckets per octave
	buckets     = 240
)

// Rungs returns the multiples of the usual write time that a [History] distinguishes.
func Rungs() []int { return []int{2, 3, 4, 6, 8, 12, 16, 24, highestRung} }

const (
	// highestRung is the highest multiple that a habit may reach: no past explains clearly slower writes.
	highestRung = 32
	// habitualMost bounds the 90th percentile of the writes that the past can explain.
	habitualMost = 500 * time.Millisecond
)

// Add adds the median and the 90th percentile of a minute's writes.
func (h *History) Add(at time.Time, median, p90 time.Duration) {
	if median <= 0 || at.IsZero() {
		return
	}
	day := h.today(at)
	if day.measured() >= dayMost {
		return
	}
	if day.Minutes == nil {
		day.Minutes = map[int]int{}
	}
	if day.Tenths == nil {
		day.Tenths = map[int]int{}
	}
	day.Minutes[bucketOf(median)]++
	day.Tenths[bucketOf(p90)]++
}

// AddSpell adds to [Day.Spells] a spell that began at the given time, during which writes took at least rung times the
// usual time.
func (h *History) AddSpell(began time.Time, rung int, lasted time.Duration) {
	if !began.IsZero() {
		addSpell(&h.today(began).Spells, began, rung, min(lasted, spellLongest))
	}
}

// AddFound adds a spell to [Day.Found], unless it lasted longer than scheduleLongest.
func (h *History) AddFound(began time.Time, rung int, lasted time.Duration) {
	if !began.IsZero() && lasted <= scheduleLongest {
		addSpell(&h.today(began).Found, began, rung, lasted)
	}
}

func addSpell(to *map[int]map[int]int, began time.Time, rung int, lasted time.Duration) {
	seconds, hour := int(lasted/time.Second), began.UTC().Hour()
	if seconds <= 0 || !slices.Contains(Rungs(), rung) {
		return
	}
	if *to == nil {
		*to = map[int]map[int]int{}
	}
	if (*to)[hour] == nil {
		(*to)[hour] = map[int]int{}
	}
	(*to)[hour][rung] = max((*to)[hour][rung], seconds)
}

// AddSlow adds a period in which the disk was SLOW and became fast again by itself, unless it lasted longer than
// scheduleLongest.
func (h *History) AddSlow(began time.Time, lasted time.Duration) {
	if began.IsZero() || lasted <= 0 || lasted > scheduleLongest {
		return
	}
	day, hour := h.today(began), began.UTC().Hour()
	if day.Slow == nil {
		day.Slow = map[int]int{}
	}
	day.Slow[hour] = max(day.Slow[hour], int(lasted/time.Second))
}

// LongestSlow returns the longest time for which the disk was SLOW before it became fast again by itself. It ignores
// days on which the disk was broken: see recurs.
func (h *History) LongestSlow() time.Duration {
	longest := 0
	for _, d := range h.Days {
		if d.recurs() {
			continue
		}
		for _, seconds := range d.Slow {
			longest = max(longest, seconds)
		}
	}
	return time.Duration(longest) * time.Second
}

// RecursSlow reports whether the disk was SLOW so often on a day that no job explains it: the disk is broken.
func (h *History) RecursSlow() bool {
	return slices.ContainsFunc(h.Days, func(d Day) bool { return d.recurs() })
}

// recurs reports whether the disk was SLOW, each time for slowCounts or longer, in more than slowHours hours of a day.
func (d *Day) recurs() bool {
	hours := 0
	for _, seconds := range d.Slow {
		if seconds >= int(slowCounts/time.Second) {
			hours++
		}
	}
	return hours > slowHours
}

// Of returns the history of the given disks: this history, or an empty one if it is about different disks. Disks of
// unknown identity count as the same. So does an array in which only some of the disks were replaced.
func (h History) Of(disks []string) History {
	if len(disks) == 0 {
		return h
	}
	if len(h.Disks) > 0 && !slices.ContainsFunc(disks, func(id string) bool { return slices.Contains(h.Disks, id) }) {
		h = History{}
	}
	h.Disks = disks
	return h
}

// AddTail adds a slow episode.
func (h *History) AddTail(at time.Time) {
	if day := h.today(at); !at.IsZero() && day.Tails < tailsMost*12 {
		day.Tails++
	}
}

// Median returns the usual write time, and whether enough minutes were measured.
func (h *History) Median() (time.Duration, bool) {
	return h.middle(func(d Day) map[int]int { return d.Minutes })
}

// P90 is like Median, for the 90th percentile of a minute's writes.
func (h *History) P90() (time.Duration, bool) {
	return h.middle(func(d Day) map[int]int { return d.Tenths })
}

// middle returns the median over the minutes of all days, and whether there are enough. of returns the minutes of a
// day, by bucket.
func (h *History) middle(of func(Day) map[int]int) (time.Duration, bool) {
	var all [buckets]int
	total := 0
	for _, d := range h.Days {
		for b, n := range of(d) {
			all[b] += n
			total += n
		}
	}
	if total < historyReady {
		return 0, false
	}
	below := 0
	for b, n := range all {
		if 2*(below+n) >= total {
			within := (float64(total)/2 - float64(below)) / float64(n)
			return time.Duration(float64(bucketLeast) * math.Exp2((float64(b)-1+within)/bucketsOf)), true
		}
		below += n
	}
	return 0, false
}

// Longest returns the longest spell of the given rung, or of the next lower one, that began at the hour of the given
// time, one hour before or one hour after. It includes the lower rung because no job slows a disk down by the same
// multiple each time.
func (h *History) Longest(at time.Time, rung int) time.Duration {
	longest, hour := time.Duration(0), at.UTC().Hour()
	for _, r := range []int{rung, lowerRung(rung)} {
		seconds := 0
		for _, d := range h.Days {
			for _, near := range []int{hour + 23, hour, hour + 1} {
				seconds = max(seconds, d.Spells[near%24][r])
			}
		}
		longest = max(longest, time.Duration(seconds)*time.Second, h.scheduled(hour, r))
	}
	return longest
}

// lowerRung returns the next lower rung, or the lowest one.
func lowerRung(rung int) int {
	all := Rungs()
	return all[max(0, slices.Index(all, rung)-1)]
}

// scheduled returns the longest spell of a scheduled job that runs at the given hour, one hour before or one hour
// after; 0 if there is none. In the first days it must have run on every complete day: today's spell alone shows no
// schedule.
func (h *History) scheduled(hour, rung int) time.Duration {
	longest, days := 0, 0
	counting, complete := h.Days, len(h.Days)-1
	if complete < scheduleDays {
		counting = h.Days[:max(0, complete)]
	}
	for _, d := range counting {
		if len(d.Found) == 0 || len(d.Found) > scheduleHours {
			continue
		}
		that := max(d.Found[(hour+23)%24][rung], d.Found[hour][rung], d.Found[(hour+1)%24][rung])
		if that > 0 {
			longest, days = max(longest, that), days+1
		}
	}
	if days < min(scheduleDays, complete) {
		return 0
	}
	return time.Duration(longest) * time.Second
}

// UsualTails returns the usual number of slow episodes in the given time.
func (h *History) UsualTails(in time.Duration) float64 {
	minutes, tails := 0, 0
	for _, d := range h.Days {
		minutes += d.measured()
		tails += d.Tails
	}
	return float64(tails) * in.Minutes() / float64(max(minutes, historyReady))
}

// Young reports whether the history covers less than a whole week.
func (h *History) Young() bool { return len(h.Days) < HistoryDays }

// today returns the day to which a measurement belongs, and begins a new day if necessary.
func (h *History) today(at time.Time) *Day {
	date := at.Unix() / (24 * 3600)
	if n := len(h.Days); n == 0 || h.Days[n-1].Date != date && h.Days[n-1].measured() >= dayFewest {
		h.Days = append(h.Days, Day{Date: date})
		h.Days = slices.Delete(h.Days, 0, max(0, len(h.Days)-HistoryDays))
	}
	return &h.Days[len(h.Days)-1]
}

func (d *Day) measured() int {
	n := 0
	for _, minutes := range d.Minutes {
		n += minutes
	}
	return n
}

// bucketOf returns the smallest b with latency <= bucketLeast * 2^(b/bucketsOf), within the bounds.
func bucketOf(latency time.Duration) int {
	octaves := math.Log2(float64(latency) / float64(bucketLeast))
	return int(min(max(math.Ceil(octaves*bucketsOf), 0), buckets-1))
}

// Encode returns the history as JSON.
func (h *History) Encode() ([]byte, error) {
	h.Version = historyVersion
	data, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("cannot write the history of the disk: %w", err)
	}
	return data, nil
}

// DecodeHistory decodes a history that Encode has encoded. It refuses values that are out of bounds.
func DecodeHistory(data []byte) (History, error) {
	var h History
	if len(data) > historyBytes {
		return h, fmt.Errorf("cannot read the history of the disk: %d bytes; the limit is %d", len(data), historyBytes)
	}
	err := strictly(data, &h)
	if err == nil {
		err = h.check()
	}
	if err != nil {
		return History{}, fmt.Errorf("cannot read the history of the disk: %w", err)
	}
	return h, nil
}

func (h *History) check() error {
	if h.Version != historyVersion {
		return fmt.Errorf("it has version %d, want %d", h.Version, historyVersion)
	}
	if len(h.Disks) > MaxDisks || slices.ContainsFunc(h.Disks, func(id string) bool { return len(id) > diskMost }) {
		return errors.New("its disks have impossible identities")
	}
	if len(h.Wear) > MaxDisks {
		return fmt.Errorf("it has the wear of %d drives; the limit is %d", len(h.Wear), MaxDisks)
	}
	for _, w := range h.Wear {
		if err := w.check(); err != nil {
			return err
		}
	}
	if len(h.Days) > HistoryDays {
		return fmt.Errorf("it has %d days; the limit is %d", len(h.Days), HistoryDays)
	}
	for _, d := range h.Days {
		if err := d.check(); err != nil {
			return err
		}
	}
	return nil
}

func (d *Day) check() error {
	impossible := errors.New("it has impossible numbers")
	if d.Tails < 0 || d.Tails > tailsMost*12 {
		return impossible
	}
	for hour, seconds := range d.Slow {
		if hour < 0 || hour > 23 || seconds < 0 || seconds > int(scheduleLongest/time.Second) {
			return impossible
		}
	}
	for _, minutes := range []map[int]int{d.Minutes, d.Tenths} {
		total := 0
		for bucket, n := range minutes {
			if bucket < 0 || bucket >= buckets || n < 0 || n > dayMost {
				return impossible
			}
			total += n
		}
		if total > dayMost {
			return impossible
		}
	}
	if !possible(d.Spells, spellLongest) || !possible(d.Found, scheduleLongest) {
		return impossible
	}
	return nil
}

func possible(spells map[int]map[int]int, most time.Duration) bool {
	for hour, longest := range spells {
		if hour < 0 || hour > 23 {
			return false
		}
		for rung, s := range longest {
			if !slices.Contains(Rungs(), rung) || s < 0 || s > int(most/time.Second) {
				return false
			}
		}
	}
	return true
}
