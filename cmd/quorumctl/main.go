// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Quorumctl shows the cluster as quorumd on this host sees it, and sends requests to quorumd over its control socket.
// It works while etcd is down.
//
// It promises:
//
//   - results go to stdout; errors go to stderr as "quorumctl: cannot …: cause", with a line "→ remedy";
//   - the exit code shows the class of the error (see exit.go);
//   - text is wrapped at 100 columns unless -o wide is set, except for lines that operators copy and, outside a
//     terminal, rows of tables; control characters in the records of other hosts never reach the output.
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
	if len(os.Args) > 1 && os.Args[1] == fileaccess.Command { // hidden: the child that runs as another user
		if err := fileaccess.ChildMain(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitFault)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == probeCommand { // hidden: the child that writes to the disk
		os.Exit(disk.ChildMain(os.Args[2:], os.Stdin, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == inspectCommand { // hidden: the child that reads an unverified file
		if err := inspectMain(context.Background(), os.Args[2:], os.Stdin, os.Stdout); err != nil {
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
