// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package roothelper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"time"

	"github.com/quorumd/quorumd/systemd"
)

// answerTimeout bounds one order, including the start of the service that carries it out.
const answerTimeout = 10 * time.Second

// Client sends the orders of one agent to the root helper.
type Client struct {
	Socket string
	Agent  string // the name of the agent's configuration
}

// SetEnvironment sets the environment of etcd's unit. It takes effect at the unit's next start.
func (c Client) SetEnvironment(ctx context.Context, vars map[string]string) error {
	initial := InitialOf(vars)
	return c.send(ctx, Request{Word: SetEnvironment, Initial: &initial})
}

// SetStartGuard sets the start guard of etcd's unit if held is true, and removes it otherwise.
func (c Client) SetStartGuard(ctx context.Context, held bool) error {
	if held {
		return c.send(ctx, Request{Word: HoldBack})
	}
	return c.send(ctx, Request{Word: LetGo})
}

// Drive queues a job for etcd's unit: Start, Stop or Restart.
func (c Client) Drive(ctx context.Context, verb string) error {
	return c.send(ctx, Request{Word: verb})
}

// RunHooks starts the operator's programs. It does not wait for their end.
func (c Client) RunHooks(ctx context.Context, hooks Hooks) error {
	return c.send(ctx, Request{Word: RunHooks, Hooks: &hooks})
}

func (c Client) send(ctx context.Context, o Request) error {
	o.Agent = c.Agent
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	fail := func(err error) error {
		kind := systemd.ErrUnavailable
		if errors.Is(err, fs.ErrPermission) {
			kind = systemd.ErrNotPermitted
		}
		return fmt.Errorf("cannot have root carry out %q: %w: %w; see \"systemctl status quorumd-helper.socket "+
			"'quorumd-helper@*'\"", o.Word, kind, err)
	}
	if err := o.Check(); err != nil {
		return fmt.Errorf("cannot have root carry out %q: %w", o.Word, err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return fail(err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unixpacket", c.Socket)
	if err != nil {
		return fail(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write(text); err != nil {
		return fail(err)
	}
	b := make([]byte, maxAnswer)
	n, err := conn.Read(b)
	if errors.Is(err, io.EOF) || err == nil && n == 0 {
		err = errors.New("the service has ended without an answer")
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return fail(err)
	}
	var a answer
	if err := json.Unmarshal(b[:n], &a); err != nil {
		return fail(err)
	}
	return a.err()
}

// answer is the result of an order.
type answer struct {
	Kind  string `json:"kind,omitempty"`
	Error string `json:"error,omitempty"`
}

const maxAnswer = 8 << 10

// kinds returns, by name, the errors that keep their identity across the socket.
func kinds() map[string]error {
	return map[string]error{
		"not-installed": systemd.ErrNotInstalled, "not-permitted": systemd.ErrNotPermitted,
		"unavailable": systemd.ErrUnavailable, "environment-unused": systemd.ErrEnvironmentUnused,
	}
}

func answerOf(err error) answer {
	if err == nil {
		return answer{}
	}
	a := answer{Error: err.Error()}
	for name, kind := range kinds() {
		if errors.Is(err, kind) {
			a.Kind = name
		}
	}
	return a
}

func (a answer) err() error {
	if a.Error == "" {
		return nil
	}
	return refused{a.Error, kinds()[a.Kind]}
}

// refused is an error that the helper returned.
type refused struct {
	text string
	kind error
}

func (e refused) Error() string { return e.text }
func (e refused) Unwrap() error { return e.kind }
