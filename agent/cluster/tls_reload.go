// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ReloadEvery calls Reload at the given interval, until the context ends. It logs an error when the error first occurs
// and when it changes.
func (c *Client) ReloadEvery(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last string
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var text string
		if err := c.Reload(); err != nil {
			text = err.Error()
		}
		if text != last && text != "" {
			c.opt.Logger.Error("cannot reload TLS files or the password; keeping the old ones", "error", text)
		}
		last = text
	}
}

// Reload reads the TLS files and the password again and reconnects if they have changed. A file that cannot be read
// leaves the old content in use.
func (c *Client) Reload() error {
	files, filesErr := c.tls.reload()
	password, err := c.login.reload()
	if err = errors.Join(filesErr, err); !files && !password {
		return err
	}
	c.opt.Logger.Info("TLS files or password changed; reconnecting")
	c.token.set("")
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(err, c.dropLocked())
}

// reload reads the files and reports whether they differ from those in use.
func (s *tlsSource) reload() (changed bool, err error) {
	if !s.files.Use {
		return false, nil
	}
	var read [3][]byte
	for i, path := range []string{s.files.CA, s.files.Cert, s.files.Key} {
		if path == "" {
			continue
		}
		if read[i], err = os.ReadFile(path); err != nil {
			return false, fmt.Errorf("cannot read the TLS files: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conf != nil && bytes.Equal(read[0], s.read[0]) && bytes.Equal(read[1], s.read[1]) &&
		bytes.Equal(read[2], s.read[2]) {
		return false, nil
	}
	conf, err := tlsConfig(s.files, read)
	if err != nil {
		return false, err
	}
	first := s.conf == nil
	s.read, s.conf = read, conf
	return !first, nil
}
