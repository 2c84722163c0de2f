// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package roothelper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	// maxOrder is the maximum size of an order in bytes, far more than orders normally have.
	maxOrder = 32 << 10
	// orderTimeout bounds the receipt of the order, and the sending of the answer.
	orderTimeout = 5 * time.Second
	// maxError is short enough that the answer fits into maxAnswer even if every character of the error is escaped.
	maxError = maxAnswer / 8
)

// Serve carries out one order for the connection that is file descriptor 0, as passed by systemd with Accept=yes. It
// accepts the order only from the owner of the socket, and from root.
func Serve(ctx context.Context, do func(context.Context, Request) error) error {
	in := os.NewFile(0, "connection")
	defer in.Close()
	c, err := net.FileConn(in)
	if err != nil {
		return fmt.Errorf("cannot serve: %w; do not run this command by hand: quorumd-helper.socket starts it", err)
	}
	defer c.Close()
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("cannot serve: stdin is not a Unix socket; quorumd-helper.socket starts this command")
	}
	group, err := admit(conn)
	if err == nil {
		err = carryOut(ctx, conn, group, do)
	} else {
		_, _ = receive(conn) // read and drop the order: the kernel discards an answer while received data is unread
	}
	text, _ := json.Marshal(answerOf(shortened(err)))
	if e := conn.SetWriteDeadline(time.Now().Add(orderTimeout)); e != nil {
		return errors.Join(err, e)
	}
	if _, e := conn.Write(text); e != nil && !errors.Is(e, syscall.EPIPE) {
		return errors.Join(err, e)
	}
	return err
}

// shortened keeps an error's kind and as much of its text as fits into an answer.
func shortened(err error) error {
	if err == nil || len(err.Error()) <= maxError {
		return err
	}
	text := err.Error()[:maxError]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return refused{text + "…", err}
}

func carryOut(ctx context.Context, conn *net.UnixConn, group int, do func(context.Context, Request) error) error {
	o, err := receive(conn)
	if err != nil {
		return fmt.Errorf("invalid order: %w", err)
	}
	o.Group = group
	return do(ctx, o)
}

// admit returns the group of the peer, or why the peer may not send orders. The owner of the socket is SocketUser= of
// the socket unit.
func admit(conn *net.UnixConn) (group int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, failed
	}
	var socket unix.Stat_t
	if err := unix.Lstat(conn.LocalAddr().String(), &socket); err != nil {
		return 0, fmt.Errorf("cannot determine the owner of the socket: %w", err)
	}
	if peer.Uid != 0 && peer.Uid != socket.Uid {
		return 0, fmt.Errorf("user %d may not send orders on this socket; only user %d and root may", peer.Uid,
			socket.Uid)
	}
	return int(peer.Gid), nil
}

// receive reads one order and checks it.
func receive(conn *net.UnixConn) (o Request, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(orderTimeout)); err != nil {
		return o, err
	}
	text := make([]byte, maxOrder)
	// File descriptors are not accepted. The kernel closes them if the receiver has no buffer for them.
	n, _, flags, _, err := conn.ReadMsgUnix(text, nil)
	if err != nil {
		return o, err
	}
	if n == 0 {
		return o, errors.New("it is empty")
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return o, fmt.Errorf("it has more than %d bytes, or passes files", maxOrder)
	}
	strict := json.NewDecoder(bytes.NewReader(text[:n]))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&o); err != nil {
		return Request{}, fmt.Errorf("it cannot be read: %w", err)
	}
	if strict.More() {
		return Request{}, errors.New("a connection carries only one order")
	}
	return o, o.Check()
}
