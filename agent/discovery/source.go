// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// File reads one URL per line; it ignores empty lines and those that begin with #.
func File(path string) Source {
	return func(context.Context) ([]string, error) {
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe must not block
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", path))
		}
		text, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
		if err != nil {
			return nil, err
		}
		return lines(text)
	}
}

// Program reads a program's output as File reads a file. The function run runs the program. It may cut off the output,
// but only after more than MaxBytes, so that an output that is too long is still recognized.
func Program(run func(ctx context.Context) ([]byte, error)) Source {
	return func(ctx context.Context) ([]string, error) {
		text, err := run(ctx)
		if err != nil {
			return nil, err
		}
		return lines(text)
	}
}

func lines(text []byte) (found []string, err error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the answer is longer than %d KiB", MaxBytes>>10)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			found = append(found, line)
		}
	}
	return found, nil
}
