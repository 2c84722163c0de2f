// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// hook writes a hook of the host: lines of shell that run in the directory of the hooks.
func (h *host) hook(when, script string) {
	h.w.t.Helper()
	dir := filepath.Join(h.Options.Dir, "hooks", when+".d")
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "10-test"), []byte("#!/bin/sh\ncd "+filepath.Dir(dir)+"\n"+script+"\n"),
			0o755)
	}
	if err != nil {
		h.w.t.Fatal(err)
	}
}

// hookOutput returns what the host's hooks have recorded.
func (h *host) hookOutput() string {
	text, _ := os.ReadFile(filepath.Join(h.Options.Dir, "log"))
	return string(text)
}

// fetch returns what the host's agent serves at a path of its metrics port.
func (h *host) fetch(path string) (text string, ok bool) {
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: callTimeout}
	answer, err := web.Get("http://" + h.Options.Metrics + path)
	if err != nil {
		return "", false
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	return string(all), err == nil && answer.StatusCode == http.StatusOK
}

// etcdPID returns the process ID of the host's etcd, or 0.
func (h *host) etcdPID() int {
	h.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	pid, err := h.EtcdPID(ctx)
	if err != nil {
		h.w.t.Fatal(err)
	}
	return pid
}

// writes reports whether the host's etcd accepts a write.
func (h *host) writes() bool {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_, err := h.etcd.Put(ctx, "written", h.Options.Name)
	return err == nil
}

// logHas reports whether the agent's log contains a text.
func (h *host) logHas(text string) bool {
	h.w.t.Helper()
	log, err := os.ReadFile(h.LogPath())
	if err != nil {
		h.w.t.Fatal(err)
	}
	return strings.Contains(string(log), text)
}

// quiet is how long the test watches an agent that must do nothing: many rounds of its loop.
const quiet = 4 * time.Second

// steps counts the steps that the agent has taken.
func (h *host) steps() uint64 {
	h.w.t.Helper()
	s, ok := h.status()
	if !ok {
		h.w.t.Fatalf("the agent of %s does not answer", h.Options.Name)
	}
	return s.Loop.Steps
}

// versions returns the etcd versions to test with: those in QUORUMD_ETCD_VERSIONS, such as "v3.5 v3.6", or the default
// version.
func versions() []string {
	list := strings.Fields(os.Getenv("QUORUMD_ETCD_VERSIONS"))
	if len(list) == 0 {
		return []string{testbed.DefaultVersion}
	}
	return list
}

// write puts a key through this host's etcd.
func (h *host) write(key, value string) {
	h.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if _, err := h.etcd.Put(ctx, key, value); err != nil {
		h.w.t.Fatal(err)
	}
}
