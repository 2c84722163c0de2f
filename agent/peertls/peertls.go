// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package peertls tests etcd's peer certificate: whether etcd can use its files, and whether other members accept it.
// The agent is not allowed to read the certificate's key, so a child runs the test as etcd's user. The child has no
// network:
//
//	member ── TCP ── agent ── socket pair ── child: TLS, and one GET /version
//
// The agent relays the bytes. It connects from the same address as etcd, because members compare that address with the
// certificate. The package promises:
//
//   - The child sends only a request for /version, and returns only whether it was answered, or why not.
//   - A test ends with its context, and relays at most [maxRelayed] bytes in each direction.
package peertls

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/child"
	"github.com/quorumd/quorumd/agent/config"
)

const (
	// Command is the name of the hidden command that runs in the child.
	Command = "peer-tls"
	check   = "check"
	request = "request"

	maxRelayed = 256 << 10 // maximum bytes in each direction, mostly certificates
	maxAnswer  = 16 << 10  // maximum bytes of the answer to the request
	maxLine    = 16 << 10  // maximum bytes of a line of the child's output
	// requestBound limits a test in the child, even if the agent is gone.
	requestBound = 10 * time.Second
)

// Tester tests the peer certificate with which this host's etcd is configured.
type Tester struct {
	Command []string // runs this program, without the name of the hidden command
	Files   config.PeerFiles
	PeerURL string // the peer URL of this host
	Host    string // the name of this host, for remedies
}

// Check returns an error if etcd cannot use the files for its peer URL, for example because the certificate is not
// valid for the address in that URL.
func (c Tester) Check(ctx context.Context) error {
	u, err := url.Parse(c.PeerURL)
	if err != nil {
		return err
	}
	var ok bool
	return c.run(ctx, nil, &ok, check, u.Hostname(), c.Host)
}

// Request returns an error unless the member at a peer URL, which is https, answers a request for /version with this
// host's peer certificate. A completed handshake proves nothing, because etcd checks the address in the certificate
// afterwards.
func (c Tester) Request(ctx context.Context, peerURL string) error {
	u, err := url.Parse(peerURL)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	own, theirs, err := pair()
	if err != nil {
		return err
	}
	var relaying sync.WaitGroup
	defer relaying.Wait()
	defer conn.Close() // ends the relay
	defer own.Close()
	relaying.Go(func() { relay(own, conn) })
	relaying.Go(func() { relay(conn, own) })
	defer theirs.Close()
	var ok bool
	return c.run(ctx, theirs, &ok, request, u.Hostname())
}

func (c Tester) run(ctx context.Context, stdin *os.File, result any, mode string, args ...string) error {
	argv := slices.Concat(c.Command, []string{Command, mode, c.Files.Cert, c.Files.Key, c.Files.CA}, args)
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	if stdin != nil {
		command.Stdin = stdin
	}
	err := child.Run(command, maxLine, nil, result)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("no answer in time: %w", ctx.Err())
	}
	return err
}

// pair returns a connected pair of sockets: one for this process, one for a child.
func pair() (own net.Conn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	mine := os.NewFile(uintptr(fds[0]), "relay")
	defer mine.Close() // FileConn duplicates the descriptor
	theirs = os.NewFile(uintptr(fds[1]), "child")
	if own, err = net.FileConn(mine); err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return own, theirs, nil
}

// relay copies the bytes of one direction, and then passes on the end of the data.
func relay(to, from net.Conn) {
	_, _ = io.Copy(to, io.LimitReader(from, maxRelayed)) // if bytes are missing, the child reports an error
	if half, is := to.(interface{ CloseWrite() error }); is {
		_ = half.CloseWrite() // fails if the connection is already closed
	}
}

// Allowed reports whether the arguments of a child (the hidden command first) name the peer certificate with which this
// configuration starts etcd.
func Allowed(args []string, c config.Config) bool {
	f := c.PeerFiles()
	return len(args) >= 6 && f.Complete() && slices.Equal(args[2:5], []string{f.Cert, f.Key, f.CA}) &&
		(args[1] == check && len(args) == 7 || args[1] == request && len(args) == 6)
}

// Main runs in the child. Its arguments are the mode, the three files, and the further arguments of the mode. conn is
// the relayed connection.
func Main(args []string, conn *os.File, stdout io.Writer) error {
	if len(args) < 5 {
		return errors.New("a mode, three files and a host are expected")
	}
	files, host := config.PeerFiles{Cert: args[1], Key: args[2], CA: args[3]}, args[4]
	ctx, cancel := context.WithTimeout(context.Background(), requestBound)
	defer cancel()
	return child.Main(ctx, stdout, func(ctx context.Context, _ *child.Progress) (bool, error) {
		if args[0] == check && len(args) == 6 {
			return true, files.Check(host, args[5])
		}
		if args[0] != request {
			return false, fmt.Errorf("unknown mode %q", args[0])
		}
		return true, ask(ctx, conn, files, host)
	})
}

// ask requests /version over a connection to a member.
func ask(ctx context.Context, conn *os.File, files config.PeerFiles, host string) error {
	conf, err := clientConfig(files, host)
	if err != nil {
		return err
	}
	raw, err := net.FileConn(conn)
	if err != nil {
		return err
	}
	defer raw.Close()
	if until, limited := ctx.Deadline(); limited {
		if err := raw.SetDeadline(until); err != nil {
			return err
		}
	}
	secured := tls.Client(raw, conf)
	if err := secured.HandshakeContext(ctx); err != nil {
		return failure(err)
	}
	if err := version(ctx, secured, host); err != nil {
		return failure(err)
	}
	return nil
}

func clientConfig(files config.PeerFiles, host string) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(files.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate", files.CA)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own}, RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12,
	}, nil
}

// version returns an error unless etcd answers.
func version(ctx context.Context, conn net.Conn, host string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(host, "0")+"/version", nil)
	if err != nil {
		return err
	}
	req.Host, req.Close = host, true
	if err := req.Write(conn); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxAnswer)), req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var etcd struct {
		Server string `json:"etcdserver"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&etcd); err != nil || etcd.Server == "" {
		return fmt.Errorf("it answers %s, but not as etcd does", answer.Status)
	}
	return nil
}

// failure explains the error of a connection. With TLS 1.3, a member that refuses a certificate closes the connection
// after the handshake. The explanation is published in the host record and must not differ from request to request. It
// therefore omits the current time, which Go's error for an expired certificate contains.
func failure(err error) error {
	alert, isAlert := errors.AsType[*net.OpError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case isInvalid && invalid.Reason == x509.Expired:
		return fmt.Errorf("its certificate is not accepted: it is valid only from %s to %s",
			date(invalid.Cert.NotBefore), date(invalid.Cert.NotAfter))
	case untrusted:
		return fmt.Errorf("its certificate is not accepted: %w", err)
	case plain:
		return errors.New("it does not serve https")
	case isAlert && alert.Op == "remote error", errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return fmt.Errorf("it closes the connection (%w): see \"rejected connection on peer endpoint\" in the log of "+
			"its etcd", err)
	}
	return err
}

func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }
