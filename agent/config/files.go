// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/quorumd/quorumd/agent/smallfile"
)

// CheckFiles checks that this process can read the files of cluster.tls, etcd.passwordFile and metrics.webConfig, and
// that certificates and keys are PEM, match each other and are valid today. It checks the files of etcd.tls only if
// quorumd runs etcd as a child process. If host.id is missing, it also checks the machine ID. The error is Errors with
// every problem. Parse does not check files, so that a configuration can be checked on another machine.
func (c Config) CheckFiles() error {
	u := fileUser("the user that runs quorumd")
	var errs Errors
	add := func(key string, err error) {
		if err != nil {
			errs = append(errs, c.problemOf(key, err))
		}
	}
	if t := c.Cluster.TLS; t != nil {
		now := time.Now()
		if t.CA != "" {
			add("cluster.tls.ca", u.checkCAs(t.CA, now))
		}
		if t.Cert != "" {
			certPEM, certErr := u.readCertificate(t.Cert, now)
			keyPEM, keyErr := u.readPrivateKey(t.Key)
			add("cluster.tls.cert", certErr)
			add("cluster.tls.key", keyErr)
			if certPEM != nil && keyErr == nil {
				add("cluster.tls.key", checkPair(certPEM, keyPEM, t.Cert, t.Key))
			}
		}
	}
	if path := c.Etcd.PasswordFile; path != "" {
		if _, err := smallfile.ReadPassword(path); err != nil {
			add("etcd.passwordFile", u.unreadable(path, err))
		}
	}
	if c.Metrics.WebConfig != "" {
		_, err := u.read(c.Metrics.WebConfig)
		if err == nil {
			err = web.Validate(c.Metrics.WebConfig)
		}
		add("metrics.webConfig", err)
	}
	if c.Host.ID == "" {
		_, err := HostID()
		add("host.id", err)
	}
	if c.Etcd.Runner == RunnerProcess { // etcd runs as the same user
		if problems, ok := errors.AsType[Errors](c.CheckEtcdFiles()); ok {
			errs = append(errs, problems...)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// fileUser names, in messages, the user that must be able to read the files.
type fileUser string

// read reads a file that the configuration names.
func (u fileUser) read(path string) ([]byte, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, u.unreadable(path, err)
	}
	if len(data) > MaxFileSize {
		return nil, fmt.Errorf("%s is larger than 1 MiB; correct the path", path)
	}
	return data, nil
}

// unreadable turns a read error into one that contains the remedy.
func (u fileUser) unreadable(path string, err error) error {
	_, failed := errors.AsType[*fs.PathError](err)
	switch {
	case !failed: // the file's content or mode is wrong
		return fmt.Errorf("cannot use %s: %w", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist; put it there or correct the path", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s cannot be read: permission denied; let %s read it and enter the directories above it",
			path, u)
	}
	return fmt.Errorf("cannot read the file: %w; correct the path", err)
}

// checkCAs requires at least one certificate that is valid now; expired ones are common after a renewal.
func (u fileUser) checkCAs(path string, now time.Time) error {
	data, err := u.read(path)
	if err != nil {
		return err
	}
	certs, err := parseCertificates(path, data)
	if err != nil {
		return err
	}
	for _, cert := range certs {
		if err = checkDates(path, cert, now); err == nil {
			return nil
		}
	}
	return err
}

// readCertificate reads the client certificate. If only dates or usage are wrong, it also returns the PEM text, so that
// the key can still be checked.
func (u fileUser) readCertificate(path string, now time.Time) ([]byte, error) {
	data, err := u.read(path)
	if err != nil {
		return nil, err
	}
	certs, err := parseCertificates(path, data)
	if err != nil {
		return nil, err
	}
	leaf := certs[0]
	if err := checkDates(path, leaf, now); err != nil {
		return data, err
	}
	if !hasUsage(leaf, x509.ExtKeyUsageClientAuth) {
		return data,
			fmt.Errorf("%s is not a client certificate (its extended key usage lacks clientAuth), so etcd would "+
				"refuse it; issue one with clientAuth", path)
	}
	return data, nil
}

// hasUsage reports whether a certificate may be used for the given purpose. A certificate without usages is valid for
// all.
func hasUsage(c *x509.Certificate, use x509.ExtKeyUsage) bool {
	return len(c.ExtKeyUsage) == 0 || slices.Contains(c.ExtKeyUsage, use) ||
		slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// parseCertificates returns the certificates of a PEM file, at least one.
func parseCertificates(path string, data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	var other []string
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			other = append(other, block.Type)
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s has a damaged certificate: %w; issue it again", path, err)
		}
		certs = append(certs, cert)
	}
	switch {
	case len(certs) > 0:
		return certs, nil
	case len(other) > 0:
		return nil, fmt.Errorf("%s has no certificate, only %s; correct the path", path, strings.Join(other, ", "))
	}
	return nil, fmt.Errorf("%s is not PEM (no BEGIN CERTIFICATE in it); convert it to PEM or correct the path", path)
}

// datesError means that a certificate is not valid now.
type datesError struct {
	path string
	cert *x509.Certificate
	now  time.Time
}

// Error names the file, the subject and the date.
func (e *datesError) Error() string {
	name := fmt.Sprintf("%s (subject %s)", e.path, excerpt(e.cert.Subject.String()))
	if e.now.Before(e.cert.NotBefore) {
		return name + " is valid only from " + e.cert.NotBefore.UTC().Format(time.RFC3339)
	}
	return name + " expired on " + e.cert.NotAfter.UTC().Format(time.RFC3339)
}

// remedy returns the first command to run. If the certificate is not valid yet, the command runs on this machine,
// otherwise on the machine with quorumctl's CA.
func (e *datesError) remedy(host string) string {
	switch {
	case e.now.Before(e.cert.NotBefore):
		return "check this machine's clock: timedatectl"
	case e.cert.IsCA:
		return "renew it: quorumctl pki rotate begin, on the host with your CA"
	}
	return "renew it: quorumctl pki renew " + cmp.Or(host, "NAME") + ", on the host with your CA"
}

// problemOf turns a file's error into a Problem.
func (c Config) problemOf(key string, err error) Problem {
	if dates, ok := errors.AsType[*datesError](err); ok {
		return Problem{Key: key, Message: dates.Error() + "; " + dates.remedy(c.Host.Name), Dated: true}
	}
	return Problem{Key: key, Message: err.Error()}
}

func checkDates(path string, cert *x509.Certificate, now time.Time) error {
	if now.After(cert.NotAfter) || now.Before(cert.NotBefore) {
		return &datesError{path, cert, now}
	}
	return nil
}

// readPrivateKey returns the PEM text of a file with a private key that needs no passphrase.
func (u fileUser) readPrivateKey(path string) ([]byte, error) {
	data, err := u.read(path)
	if err != nil {
		return nil, err
	}
	var other []string
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
			return nil, fmt.Errorf("%s is encrypted, and quorumd cannot ask for the passphrase; store the key "+
				"unencrypted, readable by quorumd only", path)
		case block.Type == "PRIVATE KEY" || strings.HasSuffix(block.Type, " PRIVATE KEY"):
			return data, nil
		}
		other = append(other, block.Type)
	}
	if len(other) > 0 {
		return nil, fmt.Errorf("%s has no private key, only %s; correct the path", path, strings.Join(other, ", "))
	}
	return nil, fmt.Errorf("%s is not PEM (no BEGIN PRIVATE KEY in it); convert it to PEM or correct the path", path)
}

func checkPair(certPEM, keyPEM []byte, cert, key string) error {
	if _, err := tls.X509KeyPair(certPEM, keyPEM); err != nil {
		reason := strings.TrimPrefix(err.Error(), "tls: ")
		return fmt.Errorf("%s does not match the certificate %s: %s; use the key that the certificate was issued for",
			key, cert, reason)
	}
	return nil
}
