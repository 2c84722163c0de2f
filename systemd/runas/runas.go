// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package runas runs child processes of a program as a different user, through a socket-activated unit.
//
// The agent runs as an unprivileged user, and only etcd's user can access etcd's data. So the children that access the
// data (to probe the disk, and to read or move the data directory) run as etcd's user:
//
//	agent ── starts ──► Send ── socket ──► Serve, in a unit with User=etcd ── starts ──► the child
//
// Send replaces the child: it passes its own stdin, stdout, stderr and further files over the socket, waits, and ends
// with the child's exit code. The package promises:
//
//   - The child has the same file descriptors as if the agent had started it directly. It ends when its stdin is
//     closed, and shares memory with the agent if it was passed a file for that.
//   - When the sender is gone, the child is killed. Serve returns only after the child has ended, even if it is stuck
//     in the kernel.
//   - Serve starts only what its caller allows, and runs one child per connection.
package runas

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxRequest is the maximum size of a request in bytes. A request contains only a few paths and durations.
	maxRequest = 64 << 10
	// maxFiles is the maximum number of passed files: stdin, stdout, stderr and the shared page of the disk probe.
	maxFiles = 4
	// writeTimeout bounds each write to the peer, which normally reads without delay.
	writeTimeout = 5 * time.Second
	// requestTimeout is how long a connection may take to send its request.
	requestTimeout = 10 * time.Second
)

// Request describes the child to run.
type Request struct {
	Agent string   `json:"agent"` // the name of the agent's configuration, which defines what the child may access
	Args  []string `json:"args"`  // arguments of the child, the hidden command first
}

// Send makes the service at the socket run the request, with these files as file descriptors 0, 1, 2 and so on. It
// returns the exit code when the child has ended.
func Send(socket string, r Request, files ...*os.File) (code int, err error) {
	fail := func(err error) (int, error) {
		return 0, fmt.Errorf("cannot run %q through %s: %w; see \"systemctl status 'quorumd-runas@*'\"", first(r.Args),
			socket, err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fail(err)
	}
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		return fail(err)
	}
	defer conn.Close() //nolint:errcheck // all that counts has been read or written
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fail(err)
	}
	if _, _, err := conn.WriteMsgUnix(text, unix.UnixRights(fds...), nil); err != nil {
		return fail(err)
	}
	answer := make([]byte, 64)
	n, err := conn.Read(answer)
	if errors.Is(err, io.EOF) || (err == nil && n == 0) {
		err = unanswered(user.Lookup)
	}
	if err != nil {
		return fail(err)
	}
	if code, err = strconv.Atoi(string(answer[:n])); err != nil {
		return fail(err)
	}
	return code, nil
}

// etcdUser is the user of quorumd-runas@.service, unless a drop-in sets a different one.
const etcdUser = "etcd"

// unanswered returns why the service ended without an answer. systemd does not start the service if its user does not
// exist, as on a host where etcd was never installed. The operator must see that reason in quorumd's status, not only
// in the journal of quorumd-runas@.service.
func unanswered(lookup func(string) (*user.User, error)) error {
	if _, err := lookup(etcdUser); errors.As(err, new(user.UnknownUserError)) {
		return errors.New("/etc/passwd has no user etcd to own etcd's files → install etcd, for example the " +
			"package quorumd-etcd")
	}
	return errors.New("the service ended without an answer")
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// Serve runs one child for the connection that is file descriptor 0, as passed by systemd with Accept=yes. The child's
// command line is command and the arguments of the request. If allow returns an error, Serve does not run the child,
// and writes the error to the sender's stderr.
func Serve(command []string, allow func(Request) error) error {
	in := os.NewFile(0, "connection")
	defer in.Close()
	c, err := net.FileConn(in)
	if err != nil {
		return fmt.Errorf("cannot serve: %w; do not run this command by hand: quorumd-runas.socket starts it", err)
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return errors.Join(errors.New("cannot serve: stdin is not a Unix socket; quorumd-runas.socket starts this "+
			"command"), c.Close())
	}
	defer conn.Close() //nolint:errcheck // all that counts has been read or written
	r, files, err := receive(conn)
	defer closeAll(files)
	if err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	if err := allow(r); err != nil {
		fmt.Fprintf(files[2], "not allowed: %v\n", err)
		return errors.Join(err, answer(conn, 1))
	}
	code, err := run(conn, append(command[:len(command):len(command)], r.Args...), files)
	if err != nil {
		fmt.Fprintln(files[2], err)
		return errors.Join(err, answer(conn, 1))
	}
	return answer(conn, code)
}

// receive reads the request and its files, at least three.
func receive(conn *net.UnixConn) (r Request, files []*os.File, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(requestTimeout)); err != nil {
		return r, nil, err
	}
	text := make([]byte, maxRequest)
	rights := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, rn, flags, _, err := conn.ReadMsgUnix(text, rights)
	if err != nil {
		return r, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:rn])
	if err != nil {
		return r, nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return r, files, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "file "+strconv.Itoa(len(files))))
		}
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || len(files) < 3 {
		return r, files, fmt.Errorf("the request has %d files, or too many bytes: want 3 to %d files, at most %d bytes",
			len(files), maxFiles, maxRequest)
	}
	if err := json.Unmarshal(text[:n], &r); err != nil {
		return r, files, fmt.Errorf("cannot read the request: %w", err)
	}
	return r, files, conn.SetReadDeadline(time.Time{})
}

// run runs the child until it ends, and kills it when the sender is gone.
func run(conn *net.UnixConn, argv []string, files []*os.File) (code int, err error) {
	child := exec.Command(argv[0], argv[1:]...)
	child.Stdin, child.Stdout, child.Stderr, child.ExtraFiles = files[0], files[1], files[2], files[3:]
	if err := child.Start(); err != nil {
		return 0, fmt.Errorf("cannot start the child: %w", err)
	}
	go func() {
		_, _ = conn.Read(make([]byte, 1)) // the sender sends nothing more, so Read returns when the connection ends
		_ = child.Process.Kill()          // the child may have ended already
	}()
	err = child.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = nil
		code = exit.ExitCode()
		if code < 0 {
			code = 1
			fmt.Fprintf(files[2], "the child was killed: %v\n", exit)
		}
	}
	return code, err
}

func answer(conn *net.UnixConn, code int) error {
	if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := conn.Write([]byte(strconv.Itoa(code)))
	if errors.Is(err, unix.EPIPE) {
		return nil // the sender is gone
	}
	return err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
