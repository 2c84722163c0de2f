// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package record is what quorumd keeps in etcd: the keys and the JSON values under
// /quorumd/<cluster>/.
//
// Every value carries a version. A reader keeps the fields of a record that it does not know, so that an older agent
// that rewrites a newer agent's record does not lose them (those of the entries of a list it does), and it refuses a
// version it does not know instead of guessing what it means.
//
// Times in records are wall-clock times for people to read. Agents judge by how long they themselves have seen a thing,
// since hosts' clocks may be wrong; only how many repairs there were today, and within 30 days, goes by them.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"
)

// Version is the version that this agent writes into every record, and the only one it reads.
const Version = 1

// MaxBytes bounds a record, and MaxRolloutBytes a rollout, which lists its hosts. A host record has about 1 KiB; a
// value over the bound was not written by an agent.
const (
	MaxBytes        = 64 << 10
	MaxRolloutBytes = 128 << 10
)

// ErrVersion means that a record was written by an agent that speaks a newer format.
var ErrVersion = errors.New("unknown record version")

// Host is what an agent says of itself. It lies under a presence lease: it is gone when the
// agent's loop has not run for the lease's time.
type Host struct {
	Version      int      `json:"version"`
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Domain       string   `json:"domain,omitempty"`
	Instance     string   `json:"instance"` // of an agent until its host reboots, so that two with one ID are noticed
	BootID       string   `json:"bootID"`
	ClientURL    string   `json:"clientURL"`
	PeerURL      string   `json:"peerURL"`
	Mode         string   `json:"mode"`
	AgentVersion string   `json:"agentVersion"`
	EtcdVersion  string   `json:"etcdVersion,omitempty"`
	MemberID     MemberID `json:"memberID,omitempty"`
	Role         string   `json:"role"`
	Health       string   `json:"health"`
	HealthText   string   `json:"healthText,omitempty" bound:"text"`
	Spares       []string `json:"spares,omitempty"` // what no finding of that verdict gates, by names of health
	Qualified    bool     `json:"qualified,omitempty"`
	FsyncP99     float64  `json:"fsyncP99,omitempty"` // seconds, rounded up to a power of two of 0.125 ms
	Wants        string   `json:"wants,omitempty"`    // what it was asked to be taken down for
	// when, in milliseconds of its wall clock since 1970; it orders turns only
	AskedAt int64 `json:"askedAt,omitempty"`
	// the reason code why the host does not go next; empty when it is ready
	Waiting string `json:"waiting,omitempty"`
	// of a voter: the revision of the record of another host's turn that it had seen when it wrote this
	Answers int64 `json:"answers,omitempty"`
	// Recovers tells that the host is SLOW by the past alone: its writes are fast again.
	Recovers bool `json:"recovers,omitempty"`
	// WriteMean is the mean of the host's writes to its disk now, in seconds, rounded up to half an octave. A voter
	// publishes it while the leader is slow; zero if unknown. WritesAt is when it was measured, by the host's clock:
	// another time is another measurement.
	WriteMean float64   `json:"writeMean,omitempty"`
	WritesAt  time.Time `json:"writesAt,omitzero"`
	// Turn is when the operation began that takes the host down, as its own disk has it: the host is in its turn
	// although the record of that may have been deleted. Zero when it is not.
	Turn time.Time `json:"turn,omitzero"`
	// Sees is how the host reaches the other members, as it has stood for a while; no member is in it that it does not
	// know about.
	Sees []Sight `json:"sees,omitempty"`
	// MemberLost tells that its member can never come back: what that has acknowledged does not lie there any more.
	MemberLost bool `json:"memberLost,omitempty"`
	// Drills reports whether the host can test restores: [DrillReady], [DrillSealed] or [DrillNoRoom]; empty when it
	// cannot.
	Drills string `json:"drills,omitempty"`
	// Stores tells that its configuration names a place for snapshots.
	Stores bool  `json:"stores,omitempty"`
	Extra  Extra `json:"-"`
}

// Sight is how a host reaches a member. The states are named by package network; one that is empty is not known.
type Sight struct {
	Member MemberID `json:"member"`
	Peer   string   `json:"peer,omitempty" bound:"word"`
	Client string   `json:"client,omitempty" bound:"word"`
	RTT    float64  `json:"rtt,omitempty"` // seconds to connect, rounded up to a power of two of 0.125 ms
	// Lost is since when neither port has taken a connection, each in several looks in a row; zero when one has, and
	// when that is not known. Another time is another word. Members say it, and who is about to be one, at once.
	Lost time.Time `json:"lost,omitzero"`
	// Link tells of one that is lost whether the host's own etcd hears of it: [LinkUp] or [LinkNone]; empty when
	// that is not known.
	Link string `json:"link,omitempty" bound:"word"`
	// Domain tells of one that is lost in which failure domain its host was when that was last heard of; what others
	// say of it is not passed on.
	Domain string `json:"domain,omitempty"`
}

// What a Link may be.
const (
	LinkUp   = "up"
	LinkNone = "none"
)

// Lock says who is acting. It lies under the lock lease.
type Lock struct {
	Version int       `json:"version"`
	Host    string    `json:"host"`
	Name    string    `json:"name"`
	Since   time.Time `json:"since"`
	Extra   Extra     `json:"-"`
}

// Op is the one operation in flight. It has no lease: a host that is down stays "the one".
type Op struct {
	Version  int    `json:"version"`
	Kind     string `json:"kind"`
	Host     string `json:"host"` // the host that is operated on
	HostName string `json:"hostName"`
	// what a join leads to, voter or standby; of a removal the name of the member
	Target   string    `json:"target,omitempty"`
	Work     string    `json:"work,omitempty"` // what a cycle is for: maintenance, restart, reboot or command
	Phase    string    `json:"phase"`
	Token    int64     `json:"token"` // create revision of the lock under which it was last advanced
	BootID   string    `json:"bootID,omitempty"`
	MemberID MemberID  `json:"memberID,omitempty"`
	Replaces MemberID  `json:"replaces,omitempty"` // of a replacement: the member whose place the host takes
	PeerURL  string    `json:"peerURL,omitempty"`
	Started  time.Time `json:"started"`
	// after which a cycle is overdue: all others know it when its host is silent
	Until time.Time `json:"until,omitzero"`
	// time since boot of the operated host when it started, meaningful with BootID
	Clock   time.Duration `json:"clock,omitempty"`
	Reason  string        `json:"reason,omitempty" bound:"text"`
	Outcome string        `json:"outcome,omitempty"` // the code with which it is rolled back
	By      string        `json:"by,omitempty"`
	Extra   Extra         `json:"-"`
}

// Of tells whether it is that host's; none is not.
func (o *Op) Of(host string) bool { return o != nil && o.Host == host }

// Pause stops every step of every host. It always has an end.
type Pause struct {
	Version int       `json:"version"`
	By      string    `json:"by"`
	Host    string    `json:"host"`
	Reason  string    `json:"reason" bound:"text"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Extra   Extra     `json:"-"`
}

// Queue calls the spares that go first when a place is free, so that the others need not look who
// they are. It only says who shall look closely: nobody acts on its word. A voter's agent writes it
// under its own presence lease, so that it ends with that agent and another one takes over.
type Queue struct {
	Version int      `json:"version"`
	Hosts   int      `json:"hosts"`          // how many are present, rounded up to a power of two
	Next    []string `json:"next"`           // host IDs of those that join, best first
	Down    []string `json:"down,omitempty"` // and of those that are taken down, in their order
	Extra   Extra    `json:"-"`
}

// FailedStep begins the text of a line about a step that has failed, or that nobody has answered. Its cause ends the
// text. It is for people: Outcome tells programs.
const FailedStep = "failed: "

// The outcomes of a step. They are named as the metrics name its results.
const (
	StepOK    = "ok"
	StepError = "error" // it has failed, or nobody has answered
)

// Line is one line of history.
type Line struct {
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
	Host    string    `json:"host"`
	Name    string    `json:"name"`
	Kind    string    `json:"kind"` // step, refusal or operation
	Code    string    `json:"code"`
	Text    string    `json:"text" bound:"text"`
	// Operation is the kind of the operation whose end the line tells; empty on any other line.
	Operation string `json:"operation,omitempty"`
	// Outcome is how it went: of a step StepOK or StepError, of an operation that has ended the code of its end. It is
	// empty on a line that tells of no end, and on those of older agents.
	Outcome string `json:"outcome,omitempty"`
	Extra   Extra  `json:"-"`
}

// Extra holds the fields of a record that this agent does not know, to be written back.
type Extra map[string]json.RawMessage

// MemberID is an etcd member ID. In JSON it is a hexadecimal string, as etcdctl prints it.
type MemberID uint64

// String gives the ID as etcdctl prints it.
func (id MemberID) String() string { return strconv.FormatUint(uint64(id), 16) }

// MarshalJSON writes the hexadecimal string.
func (id MemberID) MarshalJSON() ([]byte, error) { return json.Marshal(id.String()) }

// UnmarshalJSON reads the hexadecimal string.
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

// kind is one of the record types. The extra fields are reached through it so that encode
// and decode are written once.
type kind interface {
	Host | Lock | Op | Pause | Queue | Rollout | Release | Repairs | Recovered | Backup | Manifests | Saving |
		RestoreTest |
		Line
}

// Encode gives the JSON of a record, stamped with Version and with its unknown fields. Texts for people are shortened
// to their bound. A record that Decode would refuse is an error.
func Encode[T kind](r T) ([]byte, error) {
	if err := within(&r, false); err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", r, err)
	}
	version, extra := header(&r)
	*version = Version
	b, err := compact(r)
	if err == nil && len(*extra) > 0 {
		all := maps.Clone(*extra)
		if err = json.Unmarshal(b, &all); err == nil { // known fields win
			b, err = compact(all)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", r, err)
	}
	if most := mostBytes(r); len(b) > most {
		return nil, fmt.Errorf("cannot encode %T: %d bytes, the bound is %d", r, len(b), most)
	}
	return b, nil
}

// Decode reads a record. It returns ErrVersion for a format this agent does not know, and
// otherwise an error that says what is wrong with the value. Field names count only as they are
// written: a field "KIND" is one that this agent does not know. What it gives can be encoded.
func Decode[T kind](b []byte) (T, error) {
	var none T
	if most := mostBytes(none); len(b) > most {
		return none, fmt.Errorf("cannot read %T: %d bytes, the bound is %d", none, len(b), most)
	}
	if r, ok := decodeOwn[T](b); ok {
		return r, nil
	}
	r, err := decodeOther[T](b)
	if err == nil {
		if err = within(&r, true); err == nil {
			_, err = Encode(r) // in full it may take more bytes than it was read from
		}
	}
	if err != nil {
		return none, fmt.Errorf("cannot read %T: %w", none, err)
	}
	return r, nil
}

// decodeOther reads a record that was written in another way than this agent would write it.
func decodeOther[T kind](b []byte) (r T, err error) {
	if tooDeep(b) {
		return r, fmt.Errorf("lists and objects lie over %d deep in each other", maxDepth)
	}
	rest := Extra{}
	if err := json.Unmarshal(b, &rest); err != nil {
		return r, err
	}
	known := takeFields(rest, fieldNames(r))
	if err := checkVersion(known["version"]); err != nil {
		return r, err
	}
	fields, err := json.Marshal(known)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(fields, &r); err != nil {
		return r, err
	}
	if len(rest) > 0 {
		_, extra := header(&r)
		*extra = rest
	}
	return r, nil
}

func mostBytes(r any) int {
	if _, is := r.(Rollout); is {
		return MaxRolloutBytes
	}
	return MaxBytes
}

// decodeOwn reads a record that was written just as this agent writes it, which is most of them, and so
// holds nothing that must be looked at more closely.
func decodeOwn[T kind](b []byte) (r T, ok bool) {
	if err := json.Unmarshal(b, &r); err != nil {
		return r, false
	}
	again, err := Encode(r)
	return r, err == nil && bytes.Equal(again, b) && within(&r, true) == nil
}

// takeFields moves the fields of these names out of all. Without it json.Unmarshal, which matches
// names without regard to case, would let a field "KIND" overwrite "kind".
func takeFields(all Extra, names []string) Extra {
	taken := Extra{}
	for _, name := range names {
		if value, ok := all[name]; ok {
			taken[name] = value
			delete(all, name)
		}
	}
	return taken
}

func checkVersion(field json.RawMessage) error {
	if field == nil {
		return errors.New("it has no version: it was not written by quorumd")
	}
	var version int
	if err := json.Unmarshal(field, &version); err != nil {
		return fmt.Errorf("its version: %w", err)
	}
	if version != Version {
		return fmt.Errorf("%w %d, this agent speaks %d: upgrade quorumd on this host", ErrVersion, version, Version)
	}
	return nil
}

func header(r any) (version *int, extra *Extra) {
	switch r := r.(type) {
	case *Host:
		return &r.Version, &r.Extra
	case *Lock:
		return &r.Version, &r.Extra
	case *Op:
		return &r.Version, &r.Extra
	case *Pause:
		return &r.Version, &r.Extra
	case *Queue:
		return &r.Version, &r.Extra
	case *Rollout:
		return &r.Version, &r.Extra
	case *Release:
		return &r.Version, &r.Extra
	case *Repairs:
		return &r.Version, &r.Extra
	case *Recovered:
		return &r.Version, &r.Extra
	case *Backup:
		return &r.Version, &r.Extra
	case *Manifests:
		return &r.Version, &r.Extra
	case *Saving:
		return &r.Version, &r.Extra
	case *RestoreTest:
		return &r.Version, &r.Extra
	case *Line:
		return &r.Version, &r.Extra
	}
	panic(fmt.Sprintf("%T is no record", r)) // kind and this switch list the same types
}
