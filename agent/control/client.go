// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/control/internal/errtext"
	"github.com/quorumd/quorumd/agent/socketpath"
)

// Client sends requests to a quorumd over its socket. It keeps no connection between calls. Except for ErrNotNewest,
// every error of a method is an *Error.
type Client struct {
	socket   string
	patience time.Duration // limit for connecting, and again for the first byte of the answer
	timeout  time.Duration // limit of a whole call; a context may end it earlier
}

// Dial returns a client for the given socket; if it is empty, for DefaultSocket. It does not connect yet: each call
// does, and retries for two seconds while no daemon listens.
func Dial(socket string) *Client {
	if socket == "" {
		socket = DefaultSocket
	}
	return &Client{socket: socket, patience: 2 * time.Second, timeout: 20 * time.Second}
}

// Status returns the complete status.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	err := c.do(ctx, http.MethodGet, "/v1/status", nil, &s)
	if err == nil && s.APIVersion != APIVersion {
		return Status{}, &Error{
			Code: CodeInternal,
			Message: fmt.Sprintf("incompatible versions: quorumd serves API %q, but this client uses %q",
				errtext.Shorten(s.APIVersion), APIVersion),
			Hint: "use the quorumctl from the same package as quorumd",
		}
	}
	return s, err
}

// Checks returns all checks of this machine and their current results.
func (c *Client) Checks(ctx context.Context) (Checks, error) {
	var all Checks
	err := c.do(ctx, http.MethodGet, "/v1/checks", nil, &all)
	return all, err
}

// History returns the newest limit lines of the cluster's history, oldest first; DefaultHistory lines if limit is 0. It
// returns them together with ErrNotNewest if newer lines may be missing.
func (c *Client) History(ctx context.Context, limit int) ([]HistoryLine, error) {
	path := "/v1/history"
	if limit != 0 {
		path += "?limit=" + strconv.Itoa(limit)
	}
	var h History
	err := c.do(ctx, http.MethodGet, path, nil, &h)
	if err == nil && h.NotNewest {
		err = ErrNotNewest
	}
	return h.Lines, err
}

// MayBootstrap returns the error with which Bootstrap would fail now.
func (c *Client) MayBootstrap(ctx context.Context) error {
	var d Done
	return c.do(ctx, http.MethodGet, "/v1/bootstrap", nil, &d)
}

// Bootstrap requests that this host bootstrap a new cluster. confirm, if not empty, must be the name of the cluster
// that the host is configured for.
func (c *Client) Bootstrap(ctx context.Context, confirm string) (Done, error) {
	var d Done
	err := c.do(ctx, http.MethodPost, "/v1/bootstrap", BootstrapRequest{Confirm: confirm}, &d)
	return d, err
}

// Pause stops all steps of all hosts, for DefaultPause unless the request sets a duration. It returns the recorded
// pause.
func (c *Client) Pause(ctx context.Context, req PauseRequest) (Pause, error) {
	var p Pause
	err := c.do(ctx, http.MethodPut, "/v1/pause", req, &p)
	return p, err
}

// Resume ends the pause. Without a pause it fails with CodeNotPaused.
func (c *Client) Resume(ctx context.Context) (Done, error) {
	var d Done
	err := c.do(ctx, http.MethodDelete, "/v1/pause", nil, &d)
	return d, err
}

// ReleaseOp deletes the record of the operation in flight.
func (c *Client) ReleaseOp(ctx context.Context, req ReleaseRequest) (Done, error) {
	var d Done
	err := c.do(ctx, http.MethodPost, "/v1/operation/release", req, &d)
	return d, err
}

// RemoveMember requests the removal of a member from etcd for good, and returns the removal. The request expires after
// DefaultRemoval unless it sets a duration.
func (c *Client) RemoveMember(ctx context.Context, req RemovalRequest) (Removal, error) {
	var r Removal
	err := c.do(ctx, http.MethodPut, "/v1/removal", req, &r)
	return r, err
}

// RequestMaintenance requests work on this host and returns the recorded request. The work becomes overdue after
// DefaultMaintenance unless the request sets a duration.
func (c *Client) RequestMaintenance(ctx context.Context, req MaintenanceRequest) (Maintenance, error) {
	var m Maintenance
	err := c.do(ctx, http.MethodPut, "/v1/maintenance", req, &m)
	return m, err
}

// EndMaintenance cancels this host's request, or brings the host back if the operation has begun. Without a request it
// does nothing.
func (c *Client) EndMaintenance(ctx context.Context) (Done, error) {
	var d Done
	err := c.do(ctx, http.MethodDelete, "/v1/maintenance", nil, &d)
	return d, err
}

// StartRollout starts the requested work on one host after another, and returns the rollout.
func (c *Client) StartRollout(ctx context.Context, req RolloutRequest) (Rollout, error) {
	var r Rollout
	err := c.do(ctx, http.MethodPost, "/v1/rollout", req, &r)
	return r, err
}

// SetRollout sets the rollout's state to RolloutRunning, RolloutPaused or RolloutAborted.
func (c *Client) SetRollout(ctx context.Context, state string) (Rollout, error) {
	var r Rollout
	err := c.do(ctx, http.MethodPut, "/v1/rollout/state", RolloutStateRequest{State: state}, &r)
	return r, err
}

// Resize records the size of the cluster and returns it with the plan.
func (c *Client) Resize(ctx context.Context, req ResizeRequest) (Resize, error) {
	var r Resize
	err := c.do(ctx, http.MethodPost, "/v1/cluster/resize", req, &r)
	return r, err
}

// Size returns the size of the cluster with the steps that are left.
func (c *Client) Size(ctx context.Context) (Resize, error) {
	var r Resize
	err := c.do(ctx, http.MethodGet, "/v1/cluster/resize", nil, &r)
	return r, err
}

// Retire retires a host or undoes its retirement, and returns the result with the plan.
func (c *Client) Retire(ctx context.Context, req RetireRequest) (Retirement, error) {
	var r Retirement
	err := c.do(ctx, http.MethodPost, "/v1/retire", req, &r)
	return r, err
}

// RetiredHosts lists the retired hosts.
func (c *Client) RetiredHosts(ctx context.Context) (RetiredHosts, error) {
	var r RetiredHosts
	err := c.do(ctx, http.MethodGet, "/v1/retire", nil, &r)
	return r, err
}

// TransferLeadership requests that leadership be transferred and returns the plan.
func (c *Client) TransferLeadership(ctx context.Context, req TransferRequest) (Transfer, error) {
	var t Transfer
	err := c.do(ctx, http.MethodPost, "/v1/leader/transfer", req, &t)
	return t, err
}

// do sends one request on a connection of its own and decodes the answer.
func (c *Client) do(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return c.unanswered(err)
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://quorumd"+path, content)
	if err != nil {
		return c.unanswered(err)
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return c.unreachable(err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) }) // interrupts the reads and writes below
	defer stop()
	resp, err := c.exchange(ctx, conn, req)
	if errors.Is(err, errSilent) {
		return c.silent(method)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return c.unanswered(err)
	}
	defer resp.Body.Close()
	return c.read(resp, into)
}

// errSilent reports that the daemon accepted the connection and sent nothing.
var errSilent = errors.New("no answer")

// exchange sends a request and reads the answer. The request expects "100 Continue", which the server sends before it
// calls its backend. Thus exchange detects a hanging daemon after c.patience, while a working daemon has the whole
// timeout. It reads the answer even if the write fails: a server that refuses a connection answers and closes without
// reading.
func (c *Client) exchange(ctx context.Context, conn net.Conn, req *http.Request) (*http.Response, error) {
	req.Close = true
	req.Header.Set("Expect", "100-continue")
	if err := conn.SetDeadline(time.Now().Add(c.patience)); err != nil {
		return nil, err
	}
	writeErr := req.Write(conn)
	answer := bufio.NewReader(conn)
	if _, err := answer.Peek(1); ctx.Err() == nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errSilent
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // ctx may have ended before the deadline was cleared
		return nil, ctx.Err()
	}
	for range maxInterim {
		resp, err := http.ReadResponse(answer, req)
		if err != nil && writeErr != nil {
			return nil, writeErr
		}
		if err != nil || resp.StatusCode >= 200 {
			return resp, err
		}
	}
	return nil, errors.New("it sends only interim responses")
}

// maxInterim is the maximum number of 1xx responses before the final one.
const maxInterim = 5

// connect connects to the daemon. While no daemon listens, it retries, because a daemon may be starting.
func (c *Client) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	var d net.Dialer
	var last error // returned instead of a timeout, which would explain less
	for {
		var conn net.Conn
		err := socketpath.With(c.socket, func(address string) (err error) {
			conn, err = d.DialContext(ctx, "unix", address)
			return err
		})
		if err == nil {
			return conn, nil
		}
		if last != nil && errors.Is(err, context.DeadlineExceeded) {
			return nil, last
		}
		if !isRetryable(err) {
			return nil, err
		}
		last = err
		select {
		case <-ctx.Done():
			return nil, last
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// isRetryable reports whether the error may be due to a daemon that is still starting.
func isRetryable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EAGAIN)
}

// read decodes an answer. It ignores unknown fields, which a newer daemon may send.
func (c *Client) read(resp *http.Response, into any) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	if err != nil {
		return c.unanswered(err)
	}
	if len(body) > MaxAnswer {
		return c.unexpected(fmt.Sprintf("its response is larger than %d bytes", MaxAnswer))
	}
	if resp.StatusCode >= 400 {
		var doc ErrorDocument
		if json.Unmarshal(body, &doc) != nil || doc.Error == nil || doc.Error.Code == "" {
			return c.unexpected("it answers " + resp.Status + " without an error document")
		}
		doc.Error.Status = resp.StatusCode
		return doc.Error
	}
	if err := json.Unmarshal(body, into); err != nil {
		return c.unexpected("its response is not a quorumd document: " + errtext.JSON(err))
	}
	return nil
}

// unreachable returns the error for a failed connection.
func (c *Client) unreachable(err error) *Error {
	cause := err
	if op, ok := errors.AsType[*net.OpError](err); ok {
		cause = op.Err
	}
	e := &Error{
		Code: CodeUnreachable, Err: err,
		Message: fmt.Sprintf("cannot reach quorumd at %s: %v", c.socket, cause),
		Hint:    "is it running? systemctl status quorumd",
	}
	if errors.Is(err, fs.ErrPermission) {
		e.Code = CodeNotPermitted
		e.Hint = "no permission for the socket or a directory above it: run the command as root, or as a member of " +
			"the socket's group"
	}
	return e
}

// unanswered returns the error for a connection that failed, or timed out, before the whole answer had arrived.
func (c *Client) unanswered(err error) *Error {
	e := &Error{
		Code: CodeUnreachable, Err: err,
		Message: fmt.Sprintf("cannot get an answer from quorumd at %s: %v", c.socket, err),
		Hint:    "see what quorumd is doing: journalctl -u quorumd",
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		e.Code = CodeTimeout
	}
	return e
}

// silent returns the error for a daemon that accepts a connection and sends nothing: it is stopped, hangs or gets no
// CPU time. It may still carry out a change when it runs again.
func (c *Client) silent(method string) *Error {
	message := fmt.Sprintf("quorumd accepted the connection at %s but has not answered for %s", c.socket, c.patience)
	if method != http.MethodGet {
		message += "; it may still carry out the request"
	}
	return &Error{
		Code: CodeTimeout, Err: errSilent, Message: message,
		Hint: "check whether quorumd hangs: systemctl status quorumd; journalctl -u quorumd",
	}
}

// unexpected returns the error for an answer that quorumd does not send.
func (c *Client) unexpected(what string) *Error {
	return &Error{
		Code:    CodeInternal,
		Message: fmt.Sprintf("unexpected response from %s: %s", c.socket, what),
		Hint:    "check that the path is quorumd's control socket, and that quorumctl is of the same version",
	}
}
