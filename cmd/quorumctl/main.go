// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Quorumctl shows what quorumd on this host sees, does and waits for, and asks it for the few
// things that only a person can decide. It speaks to the daemon's control socket and to nothing
// else, so it works while etcd is down.
//
// It promises:
//
//   - what it knows goes to stdout, and what went wrong to stderr as "quorumctl: cannot …: cause"
//     and a line "→ what to do";
//   - the exit code says what kind of thing went wrong (see exit.go);
//   - lines on stdout have at most 100 columns unless -o asks for more, and hold nothing that a
//     terminal would obey, whatever the records of other hosts say.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/quorumd/quorumd/agent/fileaccess"
	"github.com/quorumd/quorumd/disk"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == fileaccess.Command { // a child, as another user: no command for people
		if err := fileaccess.ChildMain(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitFault)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == probeCommand { // likewise
		os.Exit(disk.ChildMain(os.Args[2:], os.Stdin, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == inspectCommand { // likewise
		if err := inspectMain(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitFault)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
