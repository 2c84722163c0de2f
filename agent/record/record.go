// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package record defines what quorumd keeps in etcd: the keys and the JSON values under /quorumd/<cluster>/.
//
// Every value has a version. A reader keeps unknown fields, so that an older agent that rewrites a newer agent's record
// does not drop them (except unknown fields of list entries). It refuses an unknown version instead of guessing its
// meaning.
//
// Times in records are wall-clock times for display. Because hosts' clocks may be wrong, agents decide by how long they
// themselves have observed a condition. The exceptions include the counts of repairs in the last day and the last 30
// days, which depend on recorded times.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Version is the version that this agent writes into every record, and the only one that it reads.
const Version = 1

// ErrVersion means that a record has a version that this agent cannot read.
var ErrVersion = errors.New("unknown record version")

// Host is an agent's record of its host. It has a lease, and disappears if the agent's loop does not run for the
// lease's TTL.
type Host struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Domain  string `json:"domain,omitempty"`
	// ID of the host's agent, the same for all its processes until the host reboots; reveals two hosts with one ID
	Instance  string `json:"instance"`
	BootID    string `json:"bootID"`
	ClientURL string `json:"clientURL"`
	PeerURL   string `json:"peerURL"`
	// the configured peer URL, if the member list has a different URL for the host's member
	NewPeerURL string `json:"newPeerURL,omitempty"`
	// the configured client URL, if the member list has a different URL for the host's member
	NewClientURL string `json:"newClientURL,omitempty"`
	// PeerTLS is "ready" if the host's running etcd has a peer certificate, its key and a trusted CA, as configured,
	// and otherwise "none"; empty if unknown.
	PeerTLS string `json:"peerTLS,omitempty"`
	// PeerTLSProblem is why the host's etcd cannot use https between members as configured; empty if it can, or if that
	// does not matter.
	PeerTLSProblem string `json:"peerTLSProblem,omitempty" bound:"text"`
	// NextEtcd is the version of etcd.nextBinary, and NextEtcdProblem is why that version cannot replace the running
	// etcd.
	NextEtcd        string `json:"nextEtcd,omitempty"`
	NextEtcdProblem string `json:"nextEtcdProblem,omitempty" bound:"text"`
	External        bool   `json:"external,omitempty"` // another program starts and stops the host's etcd
	// Unreached is why the host does not reach a member that the operation in flight asks about.
	Unreached    string   `json:"unreached,omitempty" bound:"text"`
	Mode         string   `json:"mode"`
	AgentVersion string   `json:"agentVersion"`
	EtcdVersion  string   `json:"etcdVersion,omitempty"`
	MemberID     MemberID `json:"memberID,omitempty"`
	Role         string   `json:"role"`
	Health       string   `json:"health"`
	HealthText   string   `json:"healthText,omitempty" bound:"text"`
	Spares       []string `json:"spares,omitempty"` // the names of the health gates that no current finding closes
	Qualified    bool     `json:"qualified,omitempty"`
	Learner      bool     `json:"learner,omitempty"`     // the host is configured to have a permanent learner
	MaxLearners  int      `json:"maxLearners,omitempty"` // limit on learners of the running etcd; 0 if unknown
	NoStandbys   bool     `json:"noStandbys,omitempty"`  // the host is configured with cluster.standbys: 0
	Disks        []string `json:"disks,omitempty"`       // the identities of the disks below etcd's data, hashed
	FsyncP99     float64  `json:"fsyncP99,omitempty"`    // seconds, rounded up to 0.125 ms times a power of two
	Wants        string   `json:"wants,omitempty"`       // the work of the host's maintenance request
	// when maintenance was requested, in milliseconds since 1970 by the host's wall clock; it only orders requests
	AskedAt int64 `json:"askedAt,omitempty"`
	// the code of the reason why the host does not go next; empty if it is ready
	Waiting string `json:"waiting,omitempty"`
	// the revision of another host's operation record for which this host last published its observations
	Answers int64 `json:"answers,omitempty"`
	// Recovers means that the host is WARM or SLOW only because of past measurements: its writes are fast again.
	Recovers bool `json:"recovers,omitempty"`
	// HealsAfter is the longest time in seconds, within the last days, for which the host's disk was SLOW before it
	// became fast again by itself. A host that is SLOW or worse publishes it.
	HealsAfter float64 `json:"healsAfter,omitempty"`
	// Defective means that the host's disk is not only SLOW: a drive reports errors, or the disk is SLOW again and
	// again. A host that is SLOW or worse publishes it.
	Defective bool `json:"defective,omitempty"`
	// DataDiffers means that the host has compared the voters' data, and that no majority has the same, or that the
	// leader's data differs.
	DataDiffers bool `json:"dataDiffers,omitempty"`
	// WriteMean is the current mean of the host's disk writes, in seconds, rounded up to 1 µs times a power of √2. A
	// voter publishes it while the leader is slow; zero if unknown. WritesAt is the time of the measurement according
	// to the host's clock: a different time means a new measurement.
	WriteMean float64   `json:"writeMean,omitempty"`
	WritesAt  time.Time `json:"writesAt,omitzero"`
	// AsksWrites means that the other voters should publish the figures below, because the host's writes take longer
	// than its own past explains, or exceed etcd's limit.
	AsksWrites bool `json:"asksWrites,omitempty"`
	// WriteP50 and WriteP90 are the median and the 90th percentile of the newest writes, in seconds, rounded to 1 µs
	// times a power of the fourth root of two, and WriteTails is the number of slow episodes in the last two hours. A
	// voter publishes them while another voter asks; zero if unknown. FiguresAt is the time of the measurement by the
	// host's clock.
	WriteP50   float64   `json:"writeP50,omitempty"`
	WriteP90   float64   `json:"writeP90,omitempty"`
	WriteTails int       `json:"writeTails,omitempty"`
	FiguresAt  time.Time `json:"figuresAt,omitzero"`
	// Turn is the start time of the operation that takes the host down, or zero. The host keeps it on its own disk, so
	// the host remains in that operation even if the operation record was deleted.
	Turn time.Time `json:"turn,omitzero"`
	// Sees lists how the host reaches the other members, without short-lived changes. It omits members with an unknown
	// state.
	Sees []Reachability `json:"sees,omitempty"`
	// MemberLost means that the host's member can never come back, because its data was lost.
	MemberLost bool `json:"memberLost,omitempty"`
	// RestoreTests is the host's ability to test restores: [RestoreTestReady], [RestoreTestSealed] or
	// [RestoreTestNoRoom]; empty if it has none.
	RestoreTests string `json:"restoreTests,omitempty"`
	// Stores means that the host's configuration names a snapshot store.
	Stores bool  `json:"stores,omitempty"`
	Extra  Extra `json:"-"`
}

// Lock describes the holder of the lock. It has the lock's lease.
type Lock struct {
	Version int       `json:"version"`
	Host    string    `json:"host"`
	Name    string    `json:"name"`
	Since   time.Time `json:"since"`
	Extra   Extra     `json:"-"`
}

// Of reports whether the operation, which may be nil, is the given host's.
func (o *Op) Of(host string) bool { return o != nil && o.Host == host }

// Pause stops the steps of all hosts, with exceptions such as the release of the lock. It always has an end.
type Pause struct {
	Version int       `json:"version"`
	By      string    `json:"by"`
	Host    string    `json:"host"`
	Reason  string    `json:"reason" bound:"text"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Extra   Extra     `json:"-"`
}

// Queue names the spares that join first when a member is missing, so that the other spares need not check whether they
// are next. It is only a hint, and no agent acts on it alone. A voter's agent writes it under its own host record's
// lease, so that it expires with that record and the agent of a different voter takes over.
type Queue struct {
	Version int      `json:"version"`
	Hosts   int      `json:"hosts"`          // number of present hosts, rounded up to a power of two
	Next    []string `json:"next"`           // IDs of hosts that join, best first
	Down    []string `json:"down,omitempty"` // IDs of hosts that are taken down, in order
	Extra   Extra    `json:"-"`
}

// FailedStep is the prefix of the text of a line about a step that failed or got no answer; the cause follows. It is
// for display: programs read Outcome.
const FailedStep = "failed: "

// The outcomes of a step, which are also the results in the metric quorumd_steps_total.
const (
	StepOK    = "ok"
	StepError = "error" // the step failed, or got no answer
)

// Line is one line of history.
type Line struct {
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
	Host    string    `json:"host"`
	Name    string    `json:"name"`
	Kind    string    `json:"kind"` // step, refusal, operation, operator or mute
	Code    string    `json:"code"`
	Text    string    `json:"text" bound:"text"`
	// Operation is the kind of the operation that the line ends; empty on any other line.
	Operation string `json:"operation,omitempty"`
	// Outcome is the result: StepOK or StepError for a step, the end code for an operation. It is empty on other lines.
	Outcome string `json:"outcome,omitempty"`
	Extra   Extra  `json:"-"`
}

// Extra holds a record's unknown fields, to be written back.
type Extra map[string]json.RawMessage

// MemberID is an etcd member ID. In JSON it is a hexadecimal string, as etcdctl prints it.
type MemberID uint64

// String returns the ID as etcdctl prints it.
func (id MemberID) String() string { return strconv.FormatUint(uint64(id), 16) }

// MarshalJSON returns the hexadecimal string.
func (id MemberID) MarshalJSON() ([]byte, error) { return json.Marshal(id.String()) }

// UnmarshalJSON parses the hexadecimal string.
func (id *MemberID) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a member ID is a hexadecimal string: %w", err)
	}
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return fmt.Errorf("a member ID is a hexadecimal string: %w", err)
	}
	*id = MemberID(n)
	return nil
}
