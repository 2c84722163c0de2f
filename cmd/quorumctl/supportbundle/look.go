// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// abandon is how long to wait for the output of a killed program.
const abandon = 500 * time.Millisecond

// Program returns a function that runs a program and returns the end of its output.
func Program(name string, args ...string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		command := exec.CommandContext(ctx, name, args...)
		var said, failed lastBytes
		command.Stdout, command.Stderr, command.WaitDelay = &said, &failed, abandon
		err := command.Run()
		if text := bytes.TrimSpace(failed.kept.Bytes()); err != nil && len(text) > 0 {
			err = fmt.Errorf("%s: %s", name, firstLine(text))
		}
		return said.kept.Bytes(), err
	}
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
}

// lastBytes keeps the end of its input.
type lastBytes struct{ kept bytes.Buffer }

func (l *lastBytes) Write(p []byte) (int, error) {
	n, err := l.kept.Write(p)
	if over := l.kept.Len() - maxRead; over > 0 {
		l.kept.Next(over)
	}
	return n, err
}

// FromFile returns a function that reads at most maxRead bytes of a regular file: of a longer file, the beginning or,
// if end is set, the end.
func FromFile(path string, end bool) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return readFile(path, maxRead, end) }
}

// ReadSecret reads a small file with values to remove from the bundle.
func ReadSecret(path string) ([]byte, error) { return readFile(path, MaxFile, false) }

func readFile(path string, most int64, end bool) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	if over := info.Size() - most; end && over > 0 {
		if _, err := f.Seek(over, io.SeekStart); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// Join returns a function that concatenates several sources, each under a title, and reports missing parts in the text.
func Join(parts ...Source) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		var b bytes.Buffer
		for _, p := range parts {
			text, err := p.Get(ctx)
			fmt.Fprintf(&b, "== %s\n%s", p.Name, text)
			if err != nil {
				fmt.Fprintf(&b, "-- missing: %v", err)
			}
			b.WriteString("\n")
		}
		return b.Bytes(), nil
	}
}

// Metrics returns a function that reads those metrics of a server that begin with one of the prefixes.
func Metrics(url string, files TLS, prefixes ...string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		client, err := files.client()
		if err != nil {
			return nil, err
		}
		ask, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return nil, err
		}
		answer, err := client.Do(ask)
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(io.LimitReader(answer.Body, 2*maxRead))
		if answer.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("%s answers %s", url, answer.Status)
		}
		return slice(text, prefixes), err
	}
}

// slice keeps the lines that begin with one of these prefixes.
func slice(text []byte, prefixes []string) []byte {
	var kept bytes.Buffer
	for line := range bytes.Lines(text) {
		for _, prefix := range prefixes {
			if bytes.HasPrefix(line, []byte(prefix)) {
				kept.Write(line)
			}
		}
	}
	return kept.Bytes()
}

// TLS contains the paths of the files for a TLS connection; it is empty for plain HTTP.
type TLS struct{ CA, Cert, Key string }

func (t TLS) client() (*http.Client, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		text, err := readFile(t.CA, MaxFile, false)
		if err != nil {
			return nil, err
		}
		conf.RootCAs = x509.NewCertPool()
		conf.RootCAs.AppendCertsFromPEM(text)
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, err
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{
		Timeout:   patience,
		Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}, nil
}

// Certificates returns a function that lists only the subject, issuer, dates, names and IP addresses of the
// certificates in these files.
func Certificates(paths ...string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		var b bytes.Buffer
		for _, path := range paths {
			text, err := readFile(path, MaxFile, false)
			if err != nil {
				fmt.Fprintf(&b, "%s: missing: %v\n", path, err)
			}
			for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
				c, err := x509.ParseCertificate(block.Bytes)
				if err != nil {
					continue // a key, or not a certificate
				}
				fmt.Fprintf(&b, "%s: %s, issued by %s, valid from %s to %s, for %s %v\n", path, c.Subject, c.Issuer,
					c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339),
					strings.Join(c.DNSNames, " "), c.IPAddresses)
			}
		}
		return b.Bytes(), nil
	}
}

// startOf returns the arguments of a process, and its environment variables with this prefix.
func startOf(pid, prefix string) ([]byte, error) {
	args, err := readFile("/proc/"+pid+"/cmdline", maxRead, false)
	if err != nil {
		return nil, err
	}
	text := append(bytes.ReplaceAll(bytes.TrimRight(args, "\x00"), []byte{0}, []byte(" ")), '\n')
	vars, err := readFile("/proc/"+pid+"/environ", maxRead, false)
	for v := range bytes.SplitSeq(vars, []byte{0}) {
		if bytes.HasPrefix(v, []byte(prefix)) {
			text = append(append(text, v...), '\n')
		}
	}
	return text, err
}
