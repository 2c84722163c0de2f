// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Command faultfs mounts a directory through FUSE and makes its disk slow, stuck or broken on request.
//
//	faultfs -back DIR -mnt DIR -sock PATH             mount, print "mounted", unmount on SIGTERM or SIGINT
//	faultfs -sock PATH -c "rule fsync * delay=20ms"   every fsync takes 20 ms longer
//	faultfs -sock PATH -c "rule any *.wal hang"       every operation on these files hangs until clear
//	faultfs -sock PATH -c clear                       remove all rules
//	faultfs -sock PATH -c stats                       print how many times each rule was applied
//	faultfs -sock PATH -c cut                         lose unsynced writes; needs -power, works once per mount
//
// fsync means fsync, fdatasync, fsync of a directory, and one call for each O_SYNC or O_DSYNC write; write includes
// fallocate and truncate; open includes create; read is only what the page cache cannot answer; any is all four of
// these and nothing else. An operation that no rule matches behaves as on the backing directory. A rule is in force
// when its command returns. An fsync returns only after the backing file was synced. faultfs differs from a disk in one
// respect: while an fsync is held, the kernel also holds writes to the same file.
//
// With -power faultfs tracks unsynced data, and cut discards all of it; power.go defines which data is unsynced. After
// cut, every write, sync and change of a name fails. Mount the directory again, as a host does when it boots.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// controlTimeout bounds one command on both sides of the socket.
const controlTimeout = 5 * time.Second

func main() {
	back := flag.String("back", "", "directory with the data")
	mnt := flag.String("mnt", "", "mount point")
	sock := flag.String("sock", "", "control socket")
	remember := flag.Bool("power", false, "track unsynced data, to simulate a power loss")
	command := flag.String("c", "", "send one command to the control socket and exit")
	flag.Parse()
	var err error
	switch {
	case *sock != "" && *command != "":
		var reply string
		reply, err = send(*sock, *command)
		fmt.Print(reply)
	case *sock != "" && *back != "" && *mnt != "":
		err = serve(*back, *mnt, *sock, *remember)
	default:
		flag.Usage()
		os.Exit(64) // EX_USAGE
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "faultfs:", err)
		os.Exit(1)
	}
}

// serve mounts the file system and answers commands. It returns when the file system has been unmounted, either after a
// signal or by a different process.
func serve(back, mnt, sock string, remember bool) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	listener, err := net.Listen("unix", sock)
	if err != nil {
		return fmt.Errorf("cannot listen on the control socket (remove it if no faultfs uses it): %w", err)
	}
	defer listener.Close()
	rules := &ruleTable{}
	var kept *power
	if remember {
		if kept, err = newPower(back); err != nil {
			return fmt.Errorf("cannot track unsynced data: %w", err)
		}
		defer func() { err = errors.Join(err, kept.close()) }()
	}
	go answer(listener, func(line string) (string, error) {
		if strings.TrimSpace(line) == "cut" {
			return kept.cut()
		}
		return rules.command(line)
	})
	server, err := mount(back, mnt, rules, kept)
	if err != nil {
		return err
	}
	fmt.Println("mounted")
	gone := make(chan struct{})
	go func() { server.Wait(); close(gone) }()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		_, _ = rules.command("clear") // cannot fail
		return unmount(mnt)
	}
}

func mount(back, mnt string, rules *ruleTable, kept *power) (*fuse.Server, error) {
	loopback, err := fs.NewLoopbackRoot(back)
	if err != nil {
		return nil, fmt.Errorf("cannot use the directory %s: %w", back, err)
	}
	asRoot := os.Geteuid() == 0
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return nil, fmt.Errorf("cannot mount: %w; run `modprobe fuse`, or give the container the device", err)
	}
	if _, err := exec.LookPath("fusermount3"); err != nil && !asRoot {
		return nil, errors.New("cannot mount: not root, and no fusermount3; run as root, or install the package fuse3")
	}
	syscall.Umask(0) // the kernel has already applied the caller's umask
	root := &node{LoopbackNode: loopback.(*fs.LoopbackNode), rules: rules, power: kept}
	server, err := fs.Mount(mnt, root, &fs.Options{
		NullPermissions: true,
		MountOptions: fuse.MountOptions{
			FsName: "faultfs", Name: "faultfs", Options: []string{"default_permissions"},
			DirectMountStrict: asRoot,
			AllowOther:        asRoot, // etcd may run as a different user
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot mount on %s: %w", mnt, err)
	}
	return server, nil
}

// unmount removes the mount even if files are open; the programs that hold them get ENOTCONN when this process has
// exited.
func unmount(mnt string) error {
	if os.Geteuid() == 0 {
		return os.NewSyscallError("umount", syscall.Unmount(mnt, syscall.MNT_DETACH))
	}
	return exec.Command("fusermount3", "-uz", mnt).Run()
}

// answer serves one command per connection until the listener is closed.
func answer(listener net.Listener, command func(line string) (string, error)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(controlTimeout))
		line, _ := bufio.NewReader(conn).ReadString('\n')
		reply, err := command(line)
		if err != nil {
			reply = "error: " + err.Error()
		}
		_, _ = io.WriteString(conn, reply) // the client may have disconnected; then it does not need the reply
		conn.Close()
	}
}

// send sends one command to a running faultfs and returns the reply.
func send(sock, command string) (string, error) {
	conn, err := net.Dial("unix", sock)
	if err != nil {
		return "", fmt.Errorf("cannot reach a running faultfs: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(controlTimeout))
	_, err = fmt.Fprintln(conn, command)
	reply, readErr := io.ReadAll(conn)
	if err := errors.Join(err, readErr); err != nil {
		return "", fmt.Errorf("cannot talk to faultfs: %w", err)
	}
	if message, failed := strings.CutPrefix(string(reply), "error: "); failed {
		return "", errors.New(message)
	}
	return string(reply), nil
}
