// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
)

// Login is the user as whom etcd is asked. The zero value is nobody, or whom the client certificate names.
type Login struct {
	User, PasswordFile string
	// AllowUnencrypted has the password sent to endpoints that are http and were discovered.
	AllowUnencrypted bool
}

// ErrRefused means that etcd's authentication or its roles do not allow what was asked.
var ErrRefused = errors.New("etcd does not allow it")

// Denied tells whether it is etcd's users and roles that stand against a call.
func Denied(err error) bool {
	return err != nil && (code(err) == codes.PermissionDenied || unknown(err) || isEtcd(err, rpctypes.ErrAuthFailed) ||
		errors.Is(err, ErrRefused))
}

// unknown tells whether etcd does not know who asks: the token has run out, or its member has restarted. Such a call
// has changed nothing, whatever it was.
func unknown(err error) bool {
	return isEtcd(err, rpctypes.ErrInvalidAuthToken) || isEtcd(err, rpctypes.ErrUserEmpty) ||
		isEtcd(err, rpctypes.ErrAuthOldRevision)
}

// wantsToken tells whether a call that was refused, and had that token, is to be made again with another. Without one
// etcd takes whom the client certificate names, and denies what that one may not do.
func wantsToken(err error, had string) bool {
	return unknown(err) || had == "" && code(err) == codes.PermissionDenied
}

func isEtcd(err, want error) bool { return errors.Is(rpctypes.Error(err), want) }

// maxPassword bounds a password file.
const maxPassword = 4 << 10

// ReadPassword reads a file that holds a password and nothing else. Only its owner may read it.
func ReadPassword(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO must not hold the agent up
	if err != nil {
		return "", fmt.Errorf("cannot read the password: %w", err)
	}
	defer file.Close() // it is only read
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot read the password: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("cannot read the password: %s is no regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("cannot use the password: %s has mode %04o, so others than its owner may read or write "+
			"it; chmod 0400", path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(file, maxPassword+1))
	text = bytes.TrimRight(text, "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot read the password: %w", err)
	case len(text) == 0:
		return "", fmt.Errorf("cannot use the password: %s is empty", path)
	case len(text) > maxPassword:
		return "", fmt.Errorf("cannot use the password: %s is larger than %d bytes", path, maxPassword)
	case bytes.ContainsAny(text, "\r\n\x00"):
		return "", fmt.Errorf("cannot use the password: %s has more than one line", path)
	}
	return string(text), nil
}

// ErrUnencrypted means that an endpoint is not asked, since it would be sent the password, or what etcd gives for it,
// unencrypted, and nothing but discovery says that it belongs to the cluster.
var ErrUnencrypted = errors.New("it is a discovered http endpoint, so etcd's password would be sent unencrypted " +
	"to an unverified server; use https, or set etcd.allowUnencryptedPassword: true")

// exposes reports whether an endpoint is one that must not be sent the password.
func (o Options) exposes(endpoint string) bool {
	return o.Login.User != "" && !o.Login.AllowUnencrypted && o.Discovers && !slices.Contains(o.Endpoints, endpoint) &&
		!strings.HasPrefix(endpoint, "https://")
}

// loginSource keeps the password that was last read.
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

// now gives the user and the present password; both empty when there is none.
func (s *loginSource) now() (user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.login.User, s.password
}

// reload reads the file and tells whether the password differs from the one in use.
func (s *loginSource) reload() (changed bool, err error) {
	if s.login.User == "" {
		return false, nil
	}
	password, err := ReadPassword(s.login.PasswordFile)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = s.password != "" && s.password != password
	s.password = password
	return changed, nil
}

// token is what etcd gives who has told it the password. One is for all members: each hears of it with the log, also a
// learner, which gives none itself. The etcd client's own is not used: it asks for one at every member, which costs
// etcd a write and much computation, before it is known that one is needed, and at every renewal of a lease.
type token struct {
	getting chan struct{} // holds one while somebody gets another

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

// RequireTransportSecurity tells that a token is also given where etcd is http, as a password is.
func (t *token) RequireTransportSecurity() bool { return false }

// authenticate gets another token than the one of before, unless somebody has just got one.
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
		case isEtcd(err, rpctypes.ErrAuthNotEnabled): // any more
			c.token.set("")
			return nil
		case refused(err):
			return fmt.Errorf("cannot authenticate as %s: %w", user, err)
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("cannot authenticate as %s: %w", user, together(errs...))
}

func (t *token) set(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.value = value
}

// User returns the etcd user of this client: the configured one, or the common name of its client certificate. It is
// empty if there is neither.
func (c *Client) User() string {
	if user, _ := c.login.now(); user != "" {
		return user
	}
	return c.tls.commonName()
}
