// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// fsyncName is the name of the fsync check.
const fsyncName = "fsync"

// outliersKept is the maximum number of outliers in a snapshot, more than any rule needs.
const outliersKept = 16

// diskMemory is the evidence that survives a restart of the agent, in addition to the state. Of the samples, it
// contains only the outliers.
type diskMemory struct {
	Qualified  bool          `json:"qualified,omitempty"`
	Run        runLimits     `json:"run"` // the limits that the qualifying run was judged by
	WasWarm    bool          `json:"wasWarm,omitempty"`
	Score      float64       `json:"score"`
	LastSample time.Duration `json:"lastSample"`
	LastJudged time.Duration `json:"lastJudged"`
	Dirty      time.Duration `json:"dirty,omitempty"`
	Broken     time.Duration `json:"broken,omitempty"`
	Outliers   []outlier     `json:"outliers,omitempty"`
}

type runLimits struct {
	Samples int           `json:"samples"`
	Warm    time.Duration `json:"warm"`
	Slow    time.Duration `json:"slow"`
}

type outlier struct {
	End     time.Duration `json:"end"`
	Latency time.Duration `json:"latency"`
}

func (t Thresholds) run() runLimits { return runLimits{t.QualifySamples, t.FsyncWarm, t.FsyncSlow} }

func (f *fsync) memory() any {
	m := diskMemory{
		Qualified: f.qualified, Run: f.limits.run(), WasWarm: f.wasWarm, Score: f.score.value,
		LastSample: f.lastSample, LastJudged: f.lastJudged, Dirty: f.dirty, Broken: f.brokenAt,
	}
	for _, o := range f.outliers.last(outliersKept) {
		m.Outliers = append(m.Outliers, outlier{o.End, o.Latency})
	}
	return m
}

// check returns an error if a time is before the boot or after the snapshot, or if the slow score is out of range.
func (m diskMemory) check(at time.Duration) error {
	moments := []time.Duration{m.LastSample, m.LastJudged, m.Dirty, m.Broken}
	for _, o := range m.Outliers {
		moments = append(moments, o.End)
	}
	if !past(at, moments...) {
		return errImpossible
	}
	if !(m.Score >= scoreLeast && m.Score <= scoreMost) {
		return fmt.Errorf("its slow score is out of range: %g", m.Score)
	}
	return nil
}

// recall restores the evidence. It allows the probe time for a first sample, unless the last sample is too old.
func (f *fsync) recall(memory []byte, at, now time.Duration) error {
	var m diskMemory
	if err := strictly(memory, &m); err != nil {
		return err
	}
	if err := m.check(at); err != nil {
		return err
	}
	if m.Qualified && f.track.State != OK && f.track.State != Warm {
		return fmt.Errorf("it has a disk that is qualified and %s", f.track.State)
	}
	f.qualified = m.Qualified && m.Run == f.limits.run()
	f.wasWarm, f.dirty, f.slowAt, f.now = m.WasWarm, m.Dirty, min(m.Dirty, now), now
	f.lastSample, f.lastJudged, f.brokenAt = m.LastSample, m.LastJudged, m.Broken
	f.score.value, f.score.began = m.Score, now
	for _, o := range m.Outliers {
		f.outliers = append(f.outliers, disk.Sample{End: o.End, Latency: o.Latency})
	}
	if f.track.Code == DiskUnfit { // the qualifying run starts again
		f.track.Code = DiskQualifying
	}
	if now-f.lastSample <= f.pace.unjudged {
		f.due = now
	}
	return nil
}
