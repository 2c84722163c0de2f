// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcdmetrics reads what an etcd, mostly the local one, tells of itself at /metrics.
//
// It promises that a look takes no longer than its context allows and reads a bounded number of bytes; and that what is
// missing, or makes no sense, is a figure that says why it is absent, never zero.
package etcdmetrics

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"

	"github.com/quorumd/quorumd/health"
)

// Reader asks one etcd. Make it with [New].
type Reader struct {
	url string
	tls func() *tls.Config
}

// New returns a reader of the etcd that serves its metrics at this URL, without the path. The other gives the TLS
// configuration of the moment, nil for none.
func New(base string, config func() *tls.Config) (*Reader, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("cannot read etcd's metrics: %w", err)
	}
	if host := net.ParseIP(u.Hostname()); host != nil && host.IsUnspecified() { // it listens everywhere
		u.Host = net.JoinHostPort("localhost", u.Port())
	}
	return &Reader{url: u.JoinPath("metrics").String(), tls: config}, nil
}

// ReadAt asks the etcd at a URL once, as [Reader.Read] does.
func ReadAt(ctx context.Context, base string, config func() *tls.Config) health.EtcdReading {
	r, err := New(base, config)
	if err != nil {
		return health.SilentEtcd("cannot parse its client URL")
	}
	return r.Read(ctx)
}

// Read asks once. What it needs beyond the context it does not wait for.
func (r *Reader) Read(ctx context.Context) health.EtcdReading {
	reading, err := r.read(ctx)
	if err != nil {
		return health.SilentEtcd(inWords(err) + " at " + r.url)
	}
	return reading
}

func (r *Reader) read(ctx context.Context) (health.EtcdReading, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return health.EtcdReading{}, err
	}
	// One connection for each look: certificates are read anew, and nothing is kept open in between. Compressing would
	// cost etcd more than it saves.
	transport := &http.Transport{TLSClientConfig: r.tls(), DisableKeepAlives: true, DisableCompression: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	answer, err := client.Do(request)
	if err != nil {
		return health.EtcdReading{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return health.EtcdReading{}, refusal(fmt.Sprintf("etcd answers %d", answer.StatusCode))
	}
	return Parse(answer.Body)
}

// refusal is an error that is in words for people, without numbers that change.
type refusal string

func (r refusal) Error() string { return string(r) }

// inWords returns why there is nothing, without what differs from one look to the next.
func inWords(err error) string {
	var known refusal
	var errno syscall.Errno
	var expired x509.CertificateInvalidError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &known):
		return known.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "etcd timed out"
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		return "the certificate of etcd has expired, or the clock of this host is wrong,"
	case errors.As(err, &untrusted):
		return "this host does not trust etcd's certificate"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return "etcd's reply is unreadable"
}
