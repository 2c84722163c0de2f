// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// ErrOtherBoot says that a snapshot was taken before the machine was last started: its moments mean nothing now, and a
// reboot is one way to clear FAILED.
var ErrOtherBoot = errors.New("it is from before the machine was last started")

const (
	snapshotVersion = 1
	snapshotLimit   = 1 << 20
	// outliersKept are more than it takes for a verdict.
	outliersKept = 16
)

// snapshot is what survives a restart of the agent: the verdicts and what binds them, but no samples.
type snapshot struct {
	Version int              `json:"version"`
	Boot    string           `json:"boot"`
	At      time.Duration    `json:"at"`
	State   State            `json:"state"`
	Since   time.Duration    `json:"since"`
	Checks  map[string]track `json:"checks"`
	Disk    diskMemory       `json:"disk"`
}

type diskMemory struct {
	Qualified  bool          `json:"qualified,omitempty"`
	Run        runLimits     `json:"run"` // what the run was held to
	WasWarm    bool          `json:"wasWarm,omitempty"`
	Score      float64       `json:"score"`
	LastSample time.Duration `json:"lastSample"`
	LastJudged time.Duration `json:"lastJudged"`
	Dirty      time.Duration `json:"dirty,omitempty"`
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

// Snapshot gives what [Restore] needs, as JSON. Boot is the boot ID of the machine.
func (j *Judge) Snapshot(boot string) ([]byte, error) {
	f := j.fsync
	s := snapshot{
		Version: snapshotVersion, Boot: boot, At: j.now, State: j.state, Since: j.since, Checks: map[string]track{},
		Disk: diskMemory{
			Qualified: f.qualified, Run: j.limits.run(), WasWarm: f.wasWarm, Score: f.score.value,
			LastSample: f.lastSample, LastJudged: f.lastJudged, Dirty: f.dirty,
		},
	}
	for _, o := range f.outliers.last(outliersKept) {
		s.Disk.Outliers = append(s.Disk.Outliers, outlier{o.End, o.Latency})
	}
	for _, c := range j.checks {
		s.Checks[c.name] = *c.track
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("cannot write the snapshot of the verdict: %w", err)
	}
	return data, nil
}

// Restore gives a judge who remembers what the snapshot says: the verdicts, how long they bind, and whether the disk is
// qualified, unless the limits of the run have changed since. Boot is the boot ID of the machine, now the moment on the
// clock of [Input]. With an error, [ErrOtherBoot] among them, the caller starts with [New].
func Restore(data []byte, t Thresholds, boot string, now time.Duration) (*Judge, error) {
	j, err := New(t)
	if err != nil {
		return nil, err
	}
	s, err := readSnapshot(data, boot, now)
	if err != nil {
		return nil, fmt.Errorf("cannot use the snapshot of the verdict: %w", err)
	}
	if err := j.recall(s, now); err != nil {
		return nil, fmt.Errorf("cannot use the snapshot of the verdict: %w", err)
	}
	return j, nil
}

func readSnapshot(data []byte, boot string, now time.Duration) (snapshot, error) {
	var s snapshot
	if len(data) > snapshotLimit {
		return s, fmt.Errorf("it has %d bytes, more than %d", len(data), snapshotLimit)
	}
	var head struct{ Version int }
	if err := json.Unmarshal(data, &head); err != nil {
		return s, err
	}
	if head.Version != snapshotVersion {
		return s, fmt.Errorf("it has version %d, known is %d", head.Version, snapshotVersion)
	}
	from := json.NewDecoder(bytes.NewReader(data))
	from.DisallowUnknownFields()
	if err := from.Decode(&s); err != nil {
		return s, err
	}
	if _, err := from.Token(); err != io.EOF {
		return s, errors.New("more follows after its end")
	}
	if s.Boot != boot {
		return s, ErrOtherBoot
	}
	return s, s.check(now)
}

// check tells whether the moments lie in the past and the numbers in their range.
func (s snapshot) check(now time.Duration) error {
	moments := []time.Duration{s.Since, s.Disk.LastSample, s.Disk.LastJudged, s.Disk.Dirty}
	for _, o := range s.Disk.Outliers {
		moments = append(moments, o.End)
	}
	for _, t := range s.Checks {
		moments = append(moments, t.Since)
		for _, returns := range t.Returns {
			moments = append(moments, returns...)
		}
	}
	switch {
	case s.At < 0 || s.At > now:
		return fmt.Errorf("it is from %s, and now it is %s", s.At, now)
	case slices.Min(moments) < 0 || slices.Max(moments) > s.At:
		return errors.New("it tells of moments that cannot be")
	case !(s.Disk.Score >= scoreLeast && s.Disk.Score <= scoreMost):
		return fmt.Errorf("its slow score is %g", s.Disk.Score)
	}
	return nil
}

func (j *Judge) recall(s snapshot, now time.Duration) error {
	j.begun, j.now, j.state, j.since = true, now, s.State, s.Since
	for _, c := range j.checks {
		was, known := s.Checks[c.name]
		if !known { // it was taken before there was this check
			c.Since = now
			continue
		}
		reached := slices.ContainsFunc(c.rules, func(r rule) bool {
			return r.to == was.State && r.code == was.Code
		})
		if !reached {
			return fmt.Errorf("it has %s %q for %s", was.State, was.Code, c.name)
		}
		*c.track = was
	}
	return j.fsync.recall(s.Disk, now)
}

// recall gives the probe the time that a first sample takes, unless the newest is too old to count.
func (f *fsync) recall(m diskMemory, now time.Duration) error {
	if m.Qualified && f.track.State != OK && f.track.State != Warm {
		return fmt.Errorf("it has a disk that is qualified and %s", f.track.State)
	}
	f.qualified = m.Qualified && m.Run == f.limits.run()
	f.wasWarm, f.dirty, f.now = m.WasWarm, m.Dirty, now
	f.lastSample, f.lastJudged = m.LastSample, m.LastJudged
	f.score.value, f.score.began = m.Score, now
	for _, o := range m.Outliers {
		f.outliers = append(f.outliers, Sample{End: o.End, Latency: o.Latency})
	}
	if f.track.Code == DiskUnfit { // the run begins anew
		f.track.Code = DiskQualifying
	}
	if now-f.lastSample <= f.pace.unjudged {
		f.due = now
	}
	return nil
}
