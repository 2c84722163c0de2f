// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// notifyTimeout bounds one message. The service manager normally reads its socket at once. If it does not, that must
// not block the loop that feeds the watchdog.
const notifyTimeout = 500 * time.Millisecond

// Notifier reports the agent's state to its own service manager, by sd_notify(3). Without a service manager, every
// method does nothing. Safe for concurrent use.
//
// It uses the messages of go-systemd, but sends them itself: daemon.SdNotify blocks without a bound when the manager's
// socket is full.
type Notifier struct {
	socket string
}

// NewNotifier returns a Notifier for the socket named by NOTIFY_SOCKET.
func NewNotifier() *Notifier { return NewNotifierTo(os.Getenv("NOTIFY_SOCKET")) }

// NewNotifierTo returns a Notifier for that socket: a path, or "@" and an abstract name. If it is empty, the Notifier
// does nothing.
func NewNotifierTo(socket string) *Notifier { return &Notifier{socket: socket} }

// Enabled reports whether there is a service manager.
func (n *Notifier) Enabled() bool { return n.socket != "" }

// Ready reports that the start is complete (READY=1).
func (n *Notifier) Ready() error { return n.send(daemon.SdNotifyReady) }

// Stopping reports that the agent is ending (STOPPING=1).
func (n *Notifier) Stopping() error { return n.send(daemon.SdNotifyStopping) }

// Reloading reports that the agent is reloading its configuration (RELOADING=1). Ready reports the end of the reload.
func (n *Notifier) Reloading() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return err
	}
	return n.send(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, now.Nano()/int64(time.Microsecond)))
}

// Watchdog reports that the agent is alive (WATCHDOG=1). The loop that the watchdog supervises must call it, at
// intervals shorter than WatchdogInterval.
func (n *Notifier) Watchdog() error { return n.send(daemon.SdNotifyWatchdog) }

// Status sets the line of text that "systemctl status" shows (STATUS=). Line breaks become spaces.
func (n *Notifier) Status(text string) error {
	return n.send("STATUS=" + strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' }), " "))
}

func (n *Notifier) send(message string) error {
	if n.socket == "" {
		return nil
	}
	err := sendDatagram(n.socket, message)
	if err != nil {
		return fmt.Errorf("cannot notify the service manager: %w: check that the service manager is running and that "+
			"NOTIFY_SOCKET names its socket", err)
	}
	return nil
}

func sendDatagram(socket, message string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	err = conn.SetWriteDeadline(time.Now().Add(notifyTimeout))
	if err == nil {
		_, err = conn.Write([]byte(message))
	}
	return errors.Join(err, conn.Close())
}

// WatchdogInterval returns the longest allowed time between two calls of Watchdog, from WATCHDOG_USEC and WATCHDOG_PID;
// 0 if the service manager expects none. Half of it is a good period.
func WatchdogInterval() (time.Duration, error) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return 0, fmt.Errorf("cannot read the watchdog interval: %w: correct WATCHDOG_USEC and WATCHDOG_PID in the "+
			"environment", err)
	}
	return interval, nil
}
