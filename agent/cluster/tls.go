// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// TLSFiles are the PEM files for connections to etcd. An empty CA means the system's CAs; Cert and Key are either
// both set or both empty.
type TLSFiles struct {
	Use           bool
	CA, Cert, Key string
}

// tlsSource keeps the TLS configuration last read from files.
type tlsSource struct {
	files TLSFiles

	mu   sync.Mutex
	read [3][]byte
	conf *tls.Config
}

func newTLSSource(files TLSFiles) (*tlsSource, error) {
	s := &tlsSource{files: files}
	_, err := s.reload()
	return s, err
}

// config returns the current configuration, or nil for connections without TLS.
func (s *tlsSource) config() *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conf.Clone()
}

// TLS returns the current configuration for connections to etcd, or nil for connections without TLS.
func (c *Client) TLS() *tls.Config { return c.tls.config() }

// commonName returns the common name of the client certificate, which etcd takes as the user if authentication is
// enabled. It returns an empty string if there is no certificate.
func (s *tlsSource) commonName() string {
	conf := s.config()
	if conf == nil || len(conf.Certificates) == 0 || conf.Certificates[0].Leaf == nil {
		return ""
	}
	return conf.Certificates[0].Leaf.Subject.CommonName
}

func tlsConfig(files TLSFiles, read [3][]byte) (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if files.CA != "" {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(read[0]) {
			return nil, fmt.Errorf("cannot use %s: it contains no PEM certificate", files.CA)
		}
	}
	if files.Cert != "" {
		pair, err := tls.X509KeyPair(read[1], read[2])
		if err != nil {
			return nil, fmt.Errorf("cannot use %s with %s: %w", files.Cert, files.Key, err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

const diagnoseTimeout = time.Second

// Diagnose connects to an endpoint and returns the error of the layer that fails, because the etcd client reports every
// failed connection as an expired deadline. It returns nil if the connection succeeds.
func (c *Client) Diagnose(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return readable(err)
	}
	defer conn.Close() // an error does not matter: nothing was written
	if u.Scheme != "https" {
		return nil
	}
	conf := c.tls.config()
	if conf == nil {
		return errors.New("the endpoint is https, but no TLS files are configured: set cluster.tls")
	}
	conf.ServerName = u.Hostname()
	secured := tls.Client(conn, conf)
	if err := secured.HandshakeContext(ctx); err != nil {
		return c.tls.withExpiry(nameSide(err))
	}
	// With TLS 1.3, the server rejects this host's certificate only after the handshake.
	if err := secured.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		return err
	}
	var one [1]byte
	if _, err := secured.Read(one[:]); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return c.tls.withExpiry(nameSide(err))
	}
	return nil
}

// withExpiry adds to err that this host's own certificate has expired, if it has.
func (s *tlsSource) withExpiry(err error) error {
	conf := s.config()
	if len(conf.Certificates) == 0 || conf.Certificates[0].Leaf == nil {
		return err
	}
	leaf := conf.Certificates[0].Leaf
	if !time.Now().After(leaf.NotAfter) {
		return err
	}
	return fmt.Errorf("%w; this host's %s (subject %.100s) expired on %s; %s", err, s.files.Cert, leaf.Subject,
		leaf.NotAfter.UTC().Format(time.RFC3339), renew)
}

// renew is the remedy for a certificate that quorumctl pki issued.
const renew = "renew it: quorumctl pki renew NAME, on the machine with your CA"

// remoteError is the operation in crypto/tls errors when the other side sent a TLS alert.
const remoteError = "remote error"

// nameSide rewords a TLS error to name the side whose certificate is at fault, and the setting to check.
func nameSide(err error) error {
	remote, isRemote := errors.AsType[*net.OpError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case isInvalid && invalid.Reason == x509.Expired && time.Now().After(invalid.Cert.NotAfter):
		return fmt.Errorf("TLS: its certificate (subject %.100s) expired on %s; %s", invalid.Cert.Subject,
			invalid.Cert.NotAfter.UTC().Format(time.RFC3339), renew)
	case isRemote && remote.Op == remoteError:
		return fmt.Errorf("TLS: it refuses this host's certificate: %w; see cluster.tls.cert", err)
	case untrusted:
		return fmt.Errorf("TLS: this host does not trust its certificate: %w; see cluster.tls.ca", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("TLS: it accepts connections but does not respond within %s: %w; check whether etcd "+
			"hangs there",
			durationfmt.Text(diagnoseTimeout), err)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("TLS: it closes the connection: %w; check whether it speaks TLS", err)
	}
	return fmt.Errorf("TLS: %w", err)
}
