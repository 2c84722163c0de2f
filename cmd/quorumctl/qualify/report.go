// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import "fmt"

// Result is the outcome of one test, or of all.
type Result string

// The results.
const (
	Pass         Result = "pass"
	Warn         Result = "warn" // a risk that does not make the machine fail
	Undecided    Result = "undecided"
	Fail         Result = "fail"
	NotAvailable Result = "not available"
)

// Finding is the outcome of one test.
type Finding struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// Report is the outcome of a benchmark.
type Report struct {
	Result Result  `json:"result"`
	Dir    string  `json:"dir"`
	Device string  `json:"device,omitempty"` // the whole disk, if the directory is on one block device
	Limit  float64 `json:"limitSeconds"`     // limit for the 99th percentile of one writer
	Runs   []Run   `json:"runs"`

	// Peers are the results for the requested addresses.
	Peers []Peer `json:"peers,omitempty"`

	// Fio is set if fio was requested and succeeded.
	Fio *Fio `json:"fio,omitempty"`

	// Neighbour is the process ID of an etcd that writes to the same disk.
	Neighbour int `json:"etcdPID,omitempty"`

	Findings []Finding `json:"findings"`
}

// Error is the reason why a benchmark failed.
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

// sum returns the worst result of all findings. Warnings and unavailable tests count as passed.
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
