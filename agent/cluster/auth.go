// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"

	"github.com/quorumd/quorumd/agent/smallfile"
)

// Login is the etcd user of the client. The zero value means no user, or the user named in the client certificate.
type Login struct {
	User, PasswordFile string
	// AllowUnencrypted permits sending the password to discovered http endpoints.
	AllowUnencrypted bool
}

// ErrRefused means that etcd's authentication or roles do not permit the call.
var ErrRefused = errors.New("etcd does not permit the call")

// Denied reports whether err means that etcd's authentication or roles forbid the call.
func Denied(err error) bool {
	return err != nil && (code(err) == codes.PermissionDenied || tokenRejected(err) ||
		isEtcd(err, rpctypes.ErrAuthFailed) || errors.Is(err, ErrRefused))
}

// tokenRejected reports whether etcd rejected the call because of its token: the call had none, the member does not
// recognize it (it expired, or the member has restarted), or users or roles have changed since it was issued. Such a
// call has changed nothing.
func tokenRejected(err error) bool {
	return isEtcd(err, rpctypes.ErrInvalidAuthToken) || isEtcd(err, rpctypes.ErrUserEmpty) ||
		isEtcd(err, rpctypes.ErrAuthOldRevision)
}

// needsNewToken reports whether a call that failed with err should be repeated with a new token. used is the token of
// the failed call. Without a token, etcd applies the permissions of the user that the client certificate names.
func needsNewToken(err error, used string) bool {
	return tokenRejected(err) || used == "" && code(err) == codes.PermissionDenied
}

func isEtcd(err, want error) bool { return errors.Is(rpctypes.Error(err), want) }

// ErrUnencrypted means that an endpoint is not used: it would receive the password or the token unencrypted, and it is
// known only from discovery.
var ErrUnencrypted = errors.New("it is a discovered http endpoint, so etcd's password would be sent unencrypted " +
	"to an unverified server; use https, or set etcd.allowUnencryptedPassword: true")

// exposes reports whether an endpoint would reveal the password and must not be used.
func (o Options) exposes(endpoint string) bool {
	return o.Login.User != "" && !o.Login.AllowUnencrypted && o.Discovers && !slices.Contains(o.Endpoints, endpoint) &&
		!strings.HasPrefix(endpoint, "https://")
}

// loginSource keeps the last password that was read.
type loginSource struct {
	login Login

	mu       sync.Mutex
	password string
}

func newLoginSource(login Login) (*loginSource, error) {
	s := &loginSource{login: login}
	_, err := s.reload()
	return s, err
}

// now returns the user and the current password; both are empty without a user.
func (s *loginSource) now() (user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.login.User, s.password
}

// reload reads the file and reports whether the password differs from the one in use.
func (s *loginSource) reload() (changed bool, err error) {
	if s.login.User == "" {
		return false, nil
	}
	password, err := smallfile.ReadPassword(s.login.PasswordFile)
	if err != nil {
		return false, fmt.Errorf("cannot use the password in %s: %w", s.login.PasswordFile, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = s.password != "" && s.password != password
	s.password = password
	return changed, nil
}

// token is the token that etcd issues for the password. One token is valid on all members because etcd replicates it
// through the Raft log; a learner accepts tokens but issues none. The etcd client's own token handling is not used: it
// requests a token from every member, before one is needed, and again for every lease renewal. Each request costs etcd
// a write and much CPU time.
type token struct {
	getting chan struct{} // holds one value while a new token is requested

	mu    sync.Mutex
	value string
}

func newToken() *token { return &token{getting: make(chan struct{}, 1)} }

func (t *token) now() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.value
}

// GetRequestMetadata adds the token to a call.
func (t *token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	value := t.now()
	if value == "" {
		return nil, nil //nolint:nilnil // nothing is added
	}
	return map[string]string{rpctypes.TokenFieldNameGRPC: value}, nil
}

// RequireTransportSecurity returns false: an endpoint that may receive the password over http may receive the token.
func (t *token) RequireTransportSecurity() bool { return false }

// authenticate replaces the current token with a new one. before is the token of the failed call. If the current token
// is a different one, another call has replaced it already, and authenticate does nothing.
func (c *Client) authenticate(ctx context.Context, before string) error {
	select {
	case c.token.getting <- struct{}{}:
		defer func() { <-c.token.getting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.token.now() != before {
		return nil
	}
	user, password := c.login.now()
	var errs []error
	for _, endpoint := range c.endpoints() {
		conn, err := c.conn(endpoint)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		answer, err := conn.Authenticate(ctx, user, password)
		switch {
		case err == nil:
			c.token.set(answer.Token)
			return nil
		case isEtcd(err, rpctypes.ErrAuthNotEnabled): // authentication was disabled
			c.token.set("")
			return nil
		case refused(err):
			return fmt.Errorf("cannot authenticate as %s: %w", user, err)
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("cannot authenticate as %s: %w", user, joinErrors(errs...))
}

func (t *token) set(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.value = value
}

// User returns the etcd user of this client: the configured one, or the common name of its client certificate; empty if
// there is neither.
func (c *Client) User() string {
	if user, _ := c.login.now(); user != "" {
		return user
	}
	return c.tls.commonName()
}
