// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import "fmt"

// Result is how the examination of one thing went, or of all.
type Result string

// The results.
const (
	Pass         Result = "pass"
	Warn         Result = "warn" // it does not keep etcd from running well today
	Undecided    Result = "undecided"
	Fail         Result = "fail"
	NotAvailable Result = "not available"
)

// Finding is what is to be said of one thing.
type Finding struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// Report is all there is to say about a machine.
type Report struct {
	Result Result  `json:"result"`
	Dir    string  `json:"dir"`
	Device string  `json:"device,omitempty"` // the whole disk, where there is one block device behind the directory
	Limit  float64 `json:"limitSeconds"`     // of the 99th percentile of one writer
	Runs   []Run   `json:"runs"`

	// Peers are the addresses that were named.
	Peers []Peer `json:"peers,omitempty"`

	// Fio is there when it was asked for, and ran.
	Fio *Fio `json:"fio,omitempty"`

	// Neighbour is the process of an etcd that writes to the same disk.
	Neighbour int `json:"etcdPID,omitempty"`

	Findings []Finding `json:"findings"`
}

// Error is why there is no report.
type Error struct {
	Message string // "cannot …: cause"
	Remedy  string
}

func (e *Error) Error() string { return e.Message }

func cannot(remedy, format string, args ...any) error {
	return &Error{Message: "cannot " + fmt.Sprintf(format, args...), Remedy: remedy}
}

func (r *Report) find(name string, result Result, remedy, format string, args ...any) {
	f := Finding{Name: name, Result: result, Text: fmt.Sprintf(format, args...)}
	if result == Fail || result == Warn || result == Undecided {
		f.Remedy = remedy
	}
	r.Findings = append(r.Findings, f)
}

// sum gives the result of all findings: the worst, but for warnings, which keep nothing from passing.
func (r *Report) sum() Result {
	sum := Pass
	for _, f := range r.Findings {
		switch f.Result {
		case Fail:
			return Fail
		case Undecided:
			sum = Undecided
		default:
		}
	}
	return sum
}
