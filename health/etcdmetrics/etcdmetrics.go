// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcdmetrics reads the /metrics of an etcd, usually the local one.
//
// It promises that a reading takes no longer than its context allows and reads a bounded number of bytes; and that a
// [health.Figure] whose value is missing or impossible is absent with a reason, never zero.
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

// Reader reads the metrics of one etcd. Create it with [New].
type Reader struct {
	url string
	tls func() *tls.Config
}

// New returns a reader of the etcd that serves its metrics at this URL, without the path. config returns the current
// TLS configuration, nil for none.
func New(base string, config func() *tls.Config) (*Reader, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("cannot read etcd's metrics: %w", err)
	}
	// etcd listens on all addresses, so ask it on loopback
	if host := net.ParseIP(u.Hostname()); host != nil && host.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", u.Port())
	}
	return &Reader{url: u.JoinPath("metrics").String(), tls: config}, nil
}

// ReadAt reads the metrics of the etcd at a URL once, as [Reader.Read] does.
func ReadAt(ctx context.Context, base string, config func() *tls.Config) health.EtcdReading {
	r, err := New(base, config)
	if err != nil {
		return health.NotAvailable[health.EtcdReading]("cannot parse etcd's client URL")
	}
	return r.Read(ctx)
}

// Read reads etcd's metrics once. It never waits beyond its context.
func (r *Reader) Read(ctx context.Context) health.EtcdReading {
	reading, err := r.read(ctx)
	if err != nil {
		return health.NotAvailable[health.EtcdReading](inWords(err) + " at " + r.url)
	}
	return reading
}

func (r *Reader) read(ctx context.Context) (health.EtcdReading, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return health.EtcdReading{}, err
	}
	// Each reading uses its own connection: certificates are read each time, and no connection stays open in between.
	// Compression would cost etcd more than it saves.
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

// refusal is an error whose text is stable and meant for operators.
type refusal string

func (r refusal) Error() string { return string(r) }

// inWords returns the reason for a missing reading, worded so that "at URL" can follow. It contains no details that
// change from one reading to the next.
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
		return "the certificate of etcd has expired (or the clock of this host is wrong)"
	case errors.As(err, &untrusted):
		return "this host does not trust etcd's certificate"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return "etcd's reply is unreadable"
}
