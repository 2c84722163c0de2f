// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/quorumd/quorumd/systemd/roothelper"
	"github.com/quorumd/quorumd/systemd/runas"
)

const (
	helperIn = "test-helper" // runs the root helper of a testHost
	runAsIn  = "test-runas"  // runs the runas service of a testHost
)

// TestMain also runs the two privileged services, which their units start in production, and the children of the agent
// and of the runas service.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == helperIn || os.Args[1] == runAsIn) {
		d := testHostIn(os.Args[2])
		if os.Args[1] == helperIn {
			_ = roothelper.Serve(context.Background(), d.do) // it sends the error to the client
		} else {
			_ = runas.Serve([]string{self}, func(r runas.Request) error { return allowRunAs(d.files, d.configs, r) })
		}
		os.Exit(0)
	}
	if code, is := Child(os.Args[1:]); is {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// writeJob appends a job to a file, which the test reads.
func writeJob(path, unit, verb string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, verb, unit)
	return errors.Join(err, f.Close())
}
