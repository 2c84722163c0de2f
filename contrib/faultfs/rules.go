// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var errUsage = errors.New("unknown command: use `rule fsync|write|open|read|any GLOB ACTION...`, " +
	"`clear` or `stats`; ACTION is delay=20ms, tail=0.01:500ms, hang or err=EIO|ENOSPC|EROFS")

// rule is one fault: operations of kind op on a file matching glob wait, fail, or both.
type rule struct {
	text     string // the rule as the user wrote it
	op, glob string
	delay    time.Duration
	tailP    float64 // share of operations that wait for tail in addition to delay
	tail     time.Duration
	hang     bool
	errno    syscall.Errno
	cleared  chan struct{} // clear closes this channel, which ends every wait of this rule
	hits     atomic.Int64  // number of operations to which the rule was applied
	waiting  atomic.Int64  // number of operations that the rule delays now
}

// ruleTable holds the rules in force, in the order in which they were added.
type ruleTable struct {
	mu    sync.Mutex
	rules []*rule // replaced as a whole, never changed in place
}

// apply holds the operation for as long as the matching rules require. It returns the errno of the first rule that has
// one, else 0. Like an operation on a real disk, it does not end early if the caller is killed.
func (t *ruleTable) apply(op, name string) syscall.Errno {
	t.mu.Lock()
	rules := t.rules
	t.mu.Unlock()
	for _, r := range rules {
		if !r.matches(op, name) {
			continue
		}
		r.hits.Add(1)
		r.waiting.Add(1)
		r.wait()
		r.waiting.Add(-1)
		if r.errno != 0 {
			return r.errno
		}
	}
	return 0
}

// matches compares the glob with the path below the mount point and with its last element. The glob was validated when
// the rule was added.
func (r *rule) matches(op, name string) bool {
	whole, _ := path.Match(r.glob, name)
	base, _ := path.Match(r.glob, path.Base(name))
	return (r.op == op || r.op == "any") && (whole || base)
}

func (r *rule) wait() {
	if r.hang {
		<-r.cleared
		return
	}
	d := r.delay
	if rand.Float64() < r.tailP {
		d += r.tail
	}
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-r.cleared:
	}
}

// command executes one line from the control socket and returns the text to print.
func (t *ruleTable) command(line string) (string, error) {
	verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	t.mu.Lock()
	defer t.mu.Unlock()
	switch verb {
	case "rule":
		r, err := parseRule(rest)
		if err != nil {
			return "", err
		}
		t.rules = append(t.rules[:len(t.rules):len(t.rules)], r)
	case "clear":
		for _, r := range t.rules {
			close(r.cleared)
		}
		t.rules = nil
	case "stats":
		var b strings.Builder
		for _, r := range t.rules {
			fmt.Fprintf(&b, "hits=%d waiting=%d rule %s\n", r.hits.Load(), r.waiting.Load(), r.text)
		}
		return b.String(), nil
	default:
		return "", errUsage
	}
	return "ok\n", nil
}

// parseRule parses "OP GLOB ACTION...".
func parseRule(text string) (*rule, error) {
	words := strings.Fields(text)
	if len(words) < 3 || !strings.Contains(" fsync write open read any ", " "+words[0]+" ") {
		return nil, errUsage
	}
	r := &rule{text: strings.Join(words, " "), op: words[0], glob: words[1], cleared: make(chan struct{})}
	_, err := path.Match(r.glob, "")
	for _, action := range words[2:] {
		err = errors.Join(err, r.parseAction(action))
	}
	if err != nil || min(r.delay, r.tail) < 0 || r.tailP < 0 || r.tailP > 1 {
		return nil, fmt.Errorf("cannot use the rule %q: %w", text, errors.Join(err, errUsage))
	}
	return r, nil
}

func (r *rule) parseAction(action string) (err error) {
	key, value, _ := strings.Cut(action, "=")
	switch key {
	case "delay":
		r.delay, err = time.ParseDuration(value)
	case "tail":
		share, wait, _ := strings.Cut(value, ":")
		if r.tailP, err = strconv.ParseFloat(share, 64); err == nil {
			r.tail, err = time.ParseDuration(wait)
		}
	case "hang":
		r.hang = true
	case "err":
		r.errno = map[string]syscall.Errno{"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EROFS": syscall.EROFS}[value]
	}
	if key != "delay" && key != "tail" && key != "hang" && r.errno == 0 {
		return fmt.Errorf("unknown action %q", action)
	}
	return err
}
