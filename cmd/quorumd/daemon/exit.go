// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"io/fs"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control/server"
)

// Exit codes, as in sysexits.h.
const (
	exitUnavailable = 69
	exitSoftware    = 70
	exitNoPerm      = 77
	exitConfig      = 78
)

// exitError is an error with its exit code.
type exitError struct {
	code int
	error
}

func (e exitError) Unwrap() error { return e.error }

// ExitCode returns the exit code for an error of Run.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if coded, ok := errors.AsType[exitError](err); ok {
		return coded.code
	}
	if _, ok := errors.AsType[config.Errors](err); ok {
		return exitConfig
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return exitNoPerm
	case errors.Is(err, server.ErrServed):
		return exitUnavailable
	}
	return exitSoftware
}
