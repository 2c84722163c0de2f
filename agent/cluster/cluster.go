// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster is the client of etcd: member list, statuses, adding, promoting and removing members, and the
// key-value calls that the lock and the records need. It promises:
//
//   - Every call is bounded, per endpoint and in total, unless its comment states that only ctx bounds it.
//   - As soon as the member list is known, a call that any voter can answer goes only to voters. A learner among the
//     endpoints would make calls fail at random.
//   - A membership change is idempotent, and the member list is read again afterwards: a call that
//     timed out may still be applied, so its error does not reveal the outcome.
//   - The package makes no decisions.
//
// Each endpoint has its own client, so that a dead or partitioned member costs one bounded call
// and never affects calls to the other members.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// ErrUnreachable means that no voter answered.
var ErrUnreachable = errors.New("no voter of the cluster answers")

// Keepalive settings. A broken connection is detected after about the sum of both.
const (
	keepaliveTime    = 5 * time.Second
	keepaliveTimeout = 3 * time.Second
)

// window is the gRPC flow-control window, per stream and per connection: how many unread bytes a member may send. It
// limits snapshot throughput on high-latency links. Without a fixed window, gRPC sends a ping with every answer to
// estimate the bandwidth.
const window = 4 << 20

// Options locate the cluster and set the timeouts.
type Options struct {
	Endpoints []string // client URLs of the hosts that may have a member
	Discovers bool     // discovery adds endpoints with [Client.Discovered]
	TLS       TLSFiles // zero for http
	Login     Login    // zero for none, or the user named in the client certificate
	// a key that this client is permitted to read; with etcd roles, a key below the client's own prefix
	Probe       string
	CallTimeout time.Duration // timeout of one call to one endpoint
	Logger      *slog.Logger
	Dial        []grpc.DialOption // more dial options; simulations use them to replace the network
}

// Client is a connection to the cluster. It is safe for concurrent use.
type Client struct {
	opt   Options
	tls   *tlsSource
	login *loginSource
	token *token

	mu     sync.Mutex
	conns  map[string]*clientv3.Client
	voters []string // client URLs of the voters in the last member list; may be empty
	last   string   // the last endpoint that answered
	failed failures
	known  discovered
	home   home
	skips  skips
	closed bool
}

// failures records the order in which endpoints failed. It holds the sequence number of the last failure of each
// endpoint that has not answered since.
type failures struct {
	count int
	at    map[string]int
}

// New returns a client. It does not connect yet. Unreadable TLS files or an unreadable password are an error.
func New(opt Options) (*Client, error) {
	source, err := newTLSSource(opt.TLS)
	if err != nil {
		return nil, err
	}
	login, err := newLoginSource(opt.Login)
	if err != nil {
		return nil, err
	}
	return &Client{
		opt: opt, tls: source, login: login, token: newToken(), conns: map[string]*clientv3.Client{},
		failed: failures{at: map[string]int{}}, skips: skips{page: pageKeys},
	}, nil
}

// probeKey returns a key that this client is permitted to read.
func (c *Client) probeKey() string { return cmp.Or(c.opt.Probe, "/quorumd") }

// Close closes all connections.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.dropLocked()
}

func (c *Client) dropLocked() error {
	var errs []error
	for url, conn := range c.conns {
		errs = append(errs, conn.Close())
		delete(c.conns, url)
	}
	return errors.Join(errs...)
}

// conn returns the client for one endpoint.
func (c *Client) conn(endpoint string) (*clientv3.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("the client is closed")
	}
	if conn := c.conns[endpoint]; conn != nil {
		return conn, nil
	}
	if c.opt.exposes(endpoint) {
		return nil, fmt.Errorf("cannot use endpoint %s: %w", endpoint, ErrUnencrypted)
	}
	config := clientv3.Config{
		Endpoints:            []string{endpoint},
		DialKeepAliveTime:    keepaliveTime,
		DialKeepAliveTimeout: keepaliveTimeout,
		DialTimeout:          c.opt.CallTimeout,
		Logger:               zap.NewNop(),
		TLS:                  c.tls.config(),
		DialOptions:          append(append(dialOptions(), grpc.WithPerRPCCredentials(c.token)), c.opt.Dial...),
		MaxCallRecvMsgSize:   answerBytes,
		MaxUnaryRetries:      1, // no retries by the etcd client: this package chooses the next endpoint
	}
	conn, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("cannot use endpoint %s: %w", endpoint, err)
	}
	c.conns[endpoint] = conn
	return conn, nil
}

// dialOptions make a call fail at once if the endpoint refuses connections. The etcd client would wait until the call's
// deadline.
func dialOptions() []grpc.DialOption {
	reconnect := backoff.DefaultConfig
	reconnect.BaseDelay, reconnect.MaxDelay = 200*time.Millisecond, 2*time.Second
	return []grpc.DialOption{
		grpc.WithDisableServiceConfig(),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: time.Second}),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
			next grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			return next(ctx, method, req, reply, conn, append(opts, grpc.WaitForReady(false))...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn,
			method string, next grpc.Streamer, opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			return next(ctx, desc, conn, method, append(opts, grpc.WaitForReady(false))...)
		}),
	}
}

// endpoints returns the endpoints to try: the voters in the last member list, or the last known voters of this host's
// cluster, or all known endpoints.
func (c *Client) endpoints() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.voters) > 0:
		return c.orderedLocked(c.voters)
	case len(c.home.voters) > 0:
		return c.orderedLocked(c.home.voters)
	}
	return c.orderedLocked(c.knownLocked())
}

// orderedLocked sorts endpoints: the last endpoint that answered, then endpoints without a failure, then the others,
// the oldest failure first. Thus a caller that runs out of time tries the remaining endpoints next time.
func (c *Client) orderedLocked(endpoints []string) []string {
	list := slices.Clone(endpoints)
	rank := func(endpoint string) int {
		if endpoint == c.last {
			return -1
		}
		return c.failed.at[endpoint]
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return list
}

// note records whether an endpoint answered.
func (c *Client) note(endpoint string, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered {
		c.last = endpoint
		delete(c.failed.at, endpoint)
		return
	}
	if c.last == endpoint {
		c.last = ""
	}
	c.failed.count++
	c.failed.at[endpoint] = c.failed.count
}

// noteForeign records that an endpoint has answered, but not for this host's cluster. The endpoint is then tried before
// endpoints that do not answer at all. Otherwise a host that returns after its cluster was recovered would spend its
// time on dead endpoints. An endpoint that timed out counts as failed, so that slow foreign endpoints do not take up
// every attempt.
func (c *Client) noteForeign(endpoint string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failed.at, endpoint)
	if c.last == endpoint {
		c.last = ""
	}
}

// setVoters sets the endpoints to use from now on, and whether they belong to a cluster other than this host's.
func (c *Client) setVoters(urls []string, foreign bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.voters, c.home.foreign = urls, foreign
	if !foreign && c.home.id != 0 {
		c.home.voters = urls
	}
	kept := c.allKnownLocked()
	for url, conn := range c.conns {
		if !slices.Contains(urls, url) && !slices.Contains(kept, url) {
			_ = conn.Close() // the connection leads to a removed member
			delete(c.conns, url)
		}
	}
}

// forgetVoters drops the voters of the last member list after none of the endpoints answered. The next call then tries
// the last known voters of this host's cluster or, if there are none, all known endpoints. If the list was another
// cluster's, writes stay refused until this host's own cluster has listed its members.
func (c *Client) forgetVoters() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.voters = nil
}

// ask makes a repeatable call: it tries one endpoint after another until one answers. An answer is success, or a
// refusal by a server that understood the call.
func ask[T any](ctx context.Context, c *Client, call func(context.Context, *clientv3.Client) (T, error)) (T, error) {
	return askOf(ctx, c, c.endpoints(), call, nil)
}

// askOf tries the given endpoints until one returns a wanted answer. If none does, it returns the first other answer
// or, without one, the first refusal. If wanted is nil, any answer is wanted and a refusal ends the search; otherwise a
// refusal does not end the search, because it may come from outside this host's cluster.
func askOf[T any](ctx context.Context, c *Client, endpoints []string,
	call func(context.Context, *clientv3.Client) (T, error), wanted func(T) bool,
) (T, error) {
	var errs []error
	var other *T
	var none T
	var refusal error
	anyAnswer := wanted == nil
	for _, endpoint := range endpoints {
		value, err := once(ctx, c, endpoint, call)
		good := err == nil && (anyAnswer || wanted(value))
		switch {
		case good || anyAnswer && refused(err):
			c.note(endpoint, true)
		case err == nil || refused(err):
			c.noteForeign(endpoint)
		default:
			c.note(endpoint, false)
		}
		switch {
		case good:
			return value, nil
		case refused(err) && anyAnswer:
			return none, err
		case refused(err):
			refusal = cmp.Or(refusal, err)
		case err == nil && other == nil:
			other = &value
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", endpoint, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if other != nil {
		return *other, nil
	}
	if refusal != nil {
		return none, refusal
	}
	c.forgetVoters()
	return none, fmt.Errorf("%w: %w", ErrUnreachable, joinErrors(errs...))
}

// send makes a call that must not be repeated blindly. It makes one attempt, at the first of the sorted endpoints. It
// never calls a cluster other than this host's.
func send[T any](ctx context.Context, c *Client, call func(context.Context, *clientv3.Client) (T, error)) (T, error) {
	var none T
	list := c.endpoints()
	switch {
	case c.listIsForeign():
		return none, ErrForeignCluster
	case len(list) == 0:
		return none, ErrUnreachable
	}
	value, err := once(ctx, c, list[0], call)
	c.note(list[0], err == nil || refused(err))
	return value, err
}

func once[T any](ctx context.Context, c *Client, endpoint string,
	call func(context.Context, *clientv3.Client) (T, error),
) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.CallTimeout)
	defer cancel()
	return unbounded(ctx, c, endpoint, call)
}

// unbounded works like the function once, but has no time limit of its own: only ctx bounds the call.
func unbounded[T any](ctx context.Context, c *Client, endpoint string,
	call func(context.Context, *clientv3.Client) (T, error),
) (T, error) {
	var none T
	conn, err := c.conn(endpoint)
	if err != nil {
		return none, err
	}
	before := c.token.now()
	value, err := call(ctx, conn)
	if c.opt.Login.User != "" && needsNewToken(err, before) { // the call has changed nothing
		if err = c.authenticate(ctx, before); err == nil {
			value, err = call(ctx, conn)
		}
	}
	return value, readable(err)
}
