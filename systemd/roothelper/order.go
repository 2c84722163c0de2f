// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package roothelper performs, as root, the few actions that the agent may not perform itself, and no others.
//
// The agent runs as its own user. Only root may write the environment of etcd's unit, set its start guard, start and
// stop it, or run the operator's hooks. The agent sends an order for each of these actions over a socket that only its
// user may use:
//
//	agent ── Client ── socket ──► Serve, in a unit of root ── performs ──► one action
//
// An order contains the name of an agent on this host, one word for the action, and for some actions a few values: see
// [Request]. Everything else is in that agent's configuration, which belongs to root. The package promises:
//
//   - Both sides check every field of an order before the helper acts on it.
//   - The kernel identifies the sender. One connection carries one order.
//   - An error keeps its identity: errors.Is finds the errors of package systemd.
package roothelper

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The values of Request.Word.
const (
	SetEnvironment = "environment" // write the environment of etcd's unit
	HoldBack       = "hold"        // set the start guard of etcd's unit
	LetGo          = "release"     // remove the start guard
	Start          = "start"       // start etcd's unit
	Stop           = "stop"
	Restart        = "restart"
	RunHooks       = "hooks" // run the operator's programs
)

// Initial is the part of a new member's environment that only the agent can determine. The rest is in the
// configuration.
type Initial struct {
	Cluster string `json:"cluster"`         // ETCD_INITIAL_CLUSTER
	State   string `json:"state"`           // ETCD_INITIAL_CLUSTER_STATE
	Token   string `json:"token,omitempty"` // ETCD_INITIAL_CLUSTER_TOKEN; set only for a new cluster
	// Digest is the digest of all variables that the agent computed. If the helper's configuration yields different
	// variables, the helper does not write them.
	Digest string `json:"digest"`
}

// Hooks are the operator's programs to run, and their arguments.
type Hooks struct {
	When    string        `json:"when"` // before, after, command or etcd
	ID      string        `json:"id"`
	Program string        `json:"program,omitempty"`
	Until   time.Duration `json:"until,omitempty"`
	Work    string        `json:"work"`
	Reason  string        `json:"reason"`
	By      string        `json:"by"`
}

// Request is an order of the agent.
type Request struct {
	Word    string   `json:"word"`
	Agent   string   `json:"agent"`             // the name of the configuration: /etc/quorumd/AGENT.yaml
	Initial *Initial `json:"initial,omitempty"` // with SetEnvironment
	Hooks   *Hooks   `json:"hooks,omitempty"`   // with RunHooks
	Group   int      `json:"-"`                 // the sender's group, as the kernel reports it
}

const (
	maxCluster = 16 << 10 // maximum bytes of an initial cluster
	maxMembers = 64
	maxText    = 4 << 10 // maximum bytes of a string that is passed on to a program
)

const (
	maxRunID = 200
	// maxMember is the maximum length of NAME=URL in bytes, with a name of 63 bytes and a host of 253 bytes.
	maxMember = 63 + len("=https://") + 253 + len(":65535")
)

// Every child of the agent compiles these expressions when it starts. Long repetitions compile slowly, so code checks
// those lengths instead.
var (
	agentName   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)
	programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	runID       = regexp.MustCompile(`^[A-Za-z0-9_.:+/ -]+$`)
	token       = regexp.MustCompile(`^quorumd-[A-Z2-7]{20,64}$`)
	digest      = regexp.MustCompile(`^[0-9a-f]{64}$`)
	member      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}=https?://` +
		`([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9._-]{1,15})?\]):[0-9]{1,5}$`)
)

// CheckAgent returns why the name of an agent, the NAME in quorumd@NAME.service, is invalid; nil if it is valid.
func CheckAgent(name string) error {
	if !agentName.MatchString(name) {
		return fmt.Errorf("%q is not a valid agent name: use at most 64 letters, digits, _, - and ., with no - or . "+
			"first", cut(name))
	}
	return nil
}

// Check returns why an order is invalid; nil if it is valid.
func (o Request) Check() error {
	if err := CheckAgent(o.Agent); err != nil {
		return err
	}
	words := []string{SetEnvironment, HoldBack, LetGo, Start, Stop, Restart, RunHooks}
	switch {
	case !slices.Contains(words, o.Word):
		return fmt.Errorf("unknown order %q: want one of %v", cut(o.Word), words)
	case (o.Word == SetEnvironment) != (o.Initial != nil), (o.Word == RunHooks) != (o.Hooks != nil):
		return fmt.Errorf("the order %q has missing or unexpected fields", o.Word)
	case o.Initial != nil:
		return o.Initial.check()
	case o.Hooks != nil:
		return o.Hooks.check()
	}
	return nil
}

// Names reports whether the initial cluster contains the host, given as NAME=URL. A new cluster must contain no other
// host.
func (i Initial) Names(host string) bool {
	return i.Cluster == host || i.State == "existing" && slices.Contains(strings.Split(i.Cluster, ","), host)
}

func (i Initial) check() error {
	members := strings.Split(i.Cluster, ",")
	if len(i.Cluster) > maxCluster || len(members) > maxMembers {
		return fmt.Errorf("the initial cluster has %d members in %d bytes; the limits are %d and %d", len(members),
			len(i.Cluster), maxMembers, maxCluster)
	}
	for _, m := range members {
		if len(m) > maxMember || !member.MatchString(m) {
			return fmt.Errorf("%q in the initial cluster is not a member: want NAME=http(s)://HOST:PORT", cut(m))
		}
	}
	switch {
	case i.State != "new" && i.State != "existing":
		return fmt.Errorf("%q is not a valid initial cluster state: want new or existing", cut(i.State))
	case i.State == "new" && !token.MatchString(i.Token), i.State == "existing" && i.Token != "":
		return fmt.Errorf("invalid token for the initial cluster state %s", i.State)
	case !digest.MatchString(i.Digest):
		return errors.New("the digest of the environment is invalid")
	}
	return nil
}

func (h Hooks) check() error {
	named := h.When == "command" || h.When == "etcd"
	switch {
	case h.When != "before" && h.When != "after" && !named:
		return fmt.Errorf("%q is not a hook type: want before, after, command or etcd", cut(h.When))
	case len(h.ID) > maxRunID, !runID.MatchString(h.ID):
		return fmt.Errorf("%q is not a valid run ID", cut(h.ID))
	case named != (h.Program != ""), h.Program != "" && !programName.MatchString(h.Program):
		return fmt.Errorf("%q is not a valid command name: use at most 64 letters, digits, - and _, with a "+
			"letter or digit first", cut(h.Program))
	case h.Until < 0:
		return errors.New("the start deadline is earlier than the boot")
	}
	for _, text := range []string{h.Work, h.Reason, h.By} {
		if len(text) > maxText || !utf8.ValidString(text) {
			return fmt.Errorf("%q is too long or not valid UTF-8", cut(text))
		}
	}
	return nil
}

// Digest returns the digest of the variables.
func Digest(vars map[string]string) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		fmt.Fprintf(sum, "%d %s %d %s\n", len(name), name, len(vars[name]), vars[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// InitialOf returns the part of etcd's start variables that an order carries.
func InitialOf(vars map[string]string) Initial {
	return Initial{
		Cluster: vars["ETCD_INITIAL_CLUSTER"], State: vars["ETCD_INITIAL_CLUSTER_STATE"],
		Token:  vars["ETCD_INITIAL_CLUSTER_TOKEN"],
		Digest: Digest(vars),
	}
}

// cut shortens text from an untrusted source to one line of at most 80 characters.
func cut(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > 80 {
		return string(runes[:80]) + "…"
	}
	return text
}
