// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"time"
)

// The codes of the check of the space in etcd's database.
const (
	EtcdQuotaLow     Code = "ETCD_QUOTA_LOW"
	EtcdQuotaFilling Code = "ETCD_QUOTA_FILLING"
)

const (
	quotaUsed, quotaUsedLeave = 80, 70 // percent
	quotaSoon, quotaSoonLeave = 3, 5   // days
	quotaEvery                = 30 * time.Minute
	quotaSpan                 = 24 * time.Hour
	quotaLeast                = 6 * time.Hour // how long growth must be observed before a forecast
	quotaMarks                = 64
	day                       = 24 * time.Hour
)

// declareQuota declares the check of the space in etcd's database. At its quota etcd rejects writes, including
// quorumd's own.
func declareQuota() declaration {
	used := Limit{Of: "quota used", Unit: "%", Enter: quotaUsed, Leave: quotaUsedLeave}
	soon := Limit{
		Of: "time until the quota is reached", Unit: "days", Enter: quotaSoon, Leave: quotaSoonLeave, Below: true,
	}
	const remedy = "find the keys that fill the database ('etcdctl snapshot save FILE', then 'quorumctl snapshot " +
		"usage FILE') and have their owner delete some; then run 'etcdctl compact REVISION' and 'quorumctl defrag " +
		"--all --reason TEXT'; or raise quota-backend-bytes on all members, to at most 8 GiB"
	return declaration{
		Check: Check{
			Name: "etcd-quota", Component: Etcd, Gates: Nothing,
			Source: "etcd_mvcc_db_total_size_in_bytes, …_in_use_in_bytes and etcd_server_quota_backend_bytes" +
				etcdSource,
			Limits: []Limit{used, soon},
			Problems: []Problem{
				{
					EtcdQuotaLow, Etcd, Warm, "The etcd database is close to its quota.",
					"At the quota etcd raises the alarm NOSPACE and rejects all writes except deletions until " +
						"an operator frees space.",
					remedy,
				},
				{
					EtcdQuotaFilling, Etcd, Warm, "The etcd database will reach its quota soon.",
					"At the growth rate of the last day the quota is reached within days. etcd then rejects all " +
						"writes except deletions.",
					remedy,
				},
			},
			Runbook: findingRunbook,
		},
		start:  OK,
		gather: func(at *track) evidence { return &quota{used: used, soon: soon, track: at} },
	}
}

// quota is the evidence on the space in etcd's database.
type quota struct {
	plain

	used, soon Limit
	track      *track
	now        time.Duration
	etcd       EtcdReading
	kept       []mark // bytes in use in the database, at most one mark per quotaEvery
}

func (q *quota) read(in Input) {
	q.now, q.etcd = in.Now, in.Etcd
	if n := len(q.kept); q.etcd.DBInUse.Known && (n == 0 || q.now-q.kept[n-1].At >= quotaEvery) {
		q.kept = append(q.kept, mark{q.now, q.etcd.DBInUse.Value})
	}
	q.kept = slices.DeleteFunc(q.kept, func(m mark) bool { return q.now-m.At > quotaSpan })
}

func (q *quota) absent() string {
	for _, f := range []Figure{q.etcd.DBSize, q.etcd.DBInUse, q.etcd.Quota} {
		if why := f.absent(); why != "" {
			return why
		}
	}
	if q.etcd.Quota.Value == 0 {
		return "etcd has no quota set"
	}
	return ""
}

// percent returns the size of the database file in percent of the quota.
func (q *quota) percent() float64 { return 100 * q.etcd.DBSize.Value / max(q.etcd.Quota.Value, 1) }

// days forecasts, by linear regression, in how many days the data in use will reach the quota. It returns false if the
// readings are too few or span too short a time, or if the data does not grow.
func (q *quota) days() (float64, bool) {
	n := float64(len(q.kept))
	if n < 3 || q.kept[len(q.kept)-1].At-q.kept[0].At < quotaLeast {
		return 0, false
	}
	var t, used float64
	for _, m := range q.kept {
		t, used = t+m.At.Hours()/n, used+m.N/n
	}
	var both, square float64
	for _, m := range q.kept {
		d := m.At.Hours() - t
		both, square = both+d*(m.N-used), square+d*d
	}
	if grows := both / square * day.Hours(); grows > 0 { // bytes per day
		return max(0, q.etcd.Quota.Value-q.etcd.DBInUse.Value) / grows, true
	}
	return 0, false
}

func (q *quota) text() string {
	text := fmt.Sprintf("database file %s, %.0f %% of the quota of %s, limit %.0f %%; "+
		"%s in use", showBytes(uint64(q.etcd.DBSize.Value)), q.percent(),
		showBytes(uint64(q.etcd.Quota.Value)), q.used.Enter,
		showBytes(uint64(q.etcd.DBInUse.Value)))
	days, growing := q.days()
	switch {
	case !growing || days > 100:
		return text
	case days < 2:
		return text + fmt.Sprintf("; full in about %.0f hours, limit %.0f days", days*24, q.soon.Enter)
	}
	return text + fmt.Sprintf("; full in about %.0f days, limit %.0f", days, q.soon.Enter)
}

func (q *quota) grade() float64 {
	if days, growing := q.days(); growing && q.track.Code == EtcdQuotaFilling {
		return q.soon.grade(days)
	}
	return q.used.grade(q.percent())
}

func (q *quota) filling(bad bool) bool {
	days, growing := q.days()
	return growing && q.soon.beyond(days, bad)
}

func (q *quota) transitions() []rule {
	low := func(bad bool) func() (string, bool) {
		return when(func() bool { return q.used.beyond(q.percent(), bad) }, q.text)
	}
	return []rule{
		{
			[]State{OK, Warm},
			Warm, EtcdQuotaLow, fmt.Sprintf("%s over %.10g %%", q.used.Of, q.used.Enter), low(false), false,
		},
		{
			[]State{OK},
			Warm, EtcdQuotaFilling, fmt.Sprintf("%s below %.10g days", q.soon.Of, q.soon.Enter),
			when(func() bool { return q.filling(false) }, q.text), false,
		},
		{
			[]State{Warm},
			Warm, EtcdQuotaFilling, fmt.Sprintf("%s at most %.10g %%, but %s below %.10g days", q.used.Of, q.used.Leave,
				q.soon.Of, q.soon.Leave),
			when(func() bool { return !q.used.beyond(q.percent(), true) && q.filling(true) }, q.text), false,
		},
		{
			[]State{Warm},
			OK, "", fmt.Sprintf("%s at most %.10g %%, and %s at least %.10g days", q.used.Of, q.used.Leave, q.soon.Of,
				q.soon.Leave),
			func() (string, bool) {
				return q.text(), !q.used.beyond(q.percent(), true) && !q.filling(true)
			},
			true,
		},
	}
}

func (q *quota) memory() any { return q.kept }

func (q *quota) recall(memory []byte, at, _ time.Duration) error {
	var kept []mark
	if err := strictly(memory, &kept); err != nil {
		return err
	}
	if len(kept) > quotaMarks {
		return fmt.Errorf("it has %d sizes of the database, more than %d", len(kept), quotaMarks)
	}
	for i, m := range kept {
		if !past(at, m.At) || m.N < 0 || i > 0 && m.At <= kept[i-1].At {
			return errImpossible
		}
	}
	q.kept = kept
	return nil
}
