// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/systemd"
)

// HostOptions describe a host: an agent and its etcd as plain processes on this machine.
type HostOptions struct {
	Name  string
	Dir   string   // directory of all of the host's own files
	Agent []string // command that starts the agent; "--config FILE" is appended
	Env   []string // additional variables for the agent's environment
	Etcd  string   // the etcd binary

	ClientURL, PeerURL             string // URLs at which others reach etcd
	ListenClientURL, ListenPeerURL string // URLs on which etcd listens, if they differ because it is behind a Proxy
	Metrics                        string // host:port
	Endpoints                      []string
	// Disk is the directory for the data directory and the probe. If it is empty, a directory in Dir is used.
	Disk string
	// Set overrides configuration keys, given as "section.key".
	Set map[string]string
	// Shipped keeps quorumd's default times instead of those that suit tests.
	Shipped bool
	// DefaultLimits keeps quorumd's default limits for the disk checks instead of limits that a busy machine can meet.
	DefaultLimits bool
}

// Host is a host and its processes.
type Host struct {
	Options HostOptions
	Client  *control.Client
	agent   *exec.Cmd
	ended   chan struct{} // closed when the agent has exited
}

// settings returns the configuration of a host, with times that suit tests and demonstrations: waits of a minute become
// seconds. The settle time is slightly longer than the 5 s that etcd itself requires.
func (o HostOptions) settings() map[string]string {
	s := map[string]string{
		"mode":      "manage",
		"host.name": o.Name, "host.id": "host-" + o.Name, "host.domain": "rack-" + o.Name,
		"host.allowSharedHardware": "true", // all hosts of a cluster are processes on this machine
		"cluster.name":             "demo", "cluster.voters": "3", "cluster.standbys": "1",
		"cluster.endpoints": "[" + strings.Join(o.Endpoints, ", ") + "]",
		"etcd.runner":       "process", "etcd.binary": o.Etcd, "etcd.dataDir": o.disk("etcd"),
		"etcd.clientURL": o.ClientURL, "etcd.peerURL": o.PeerURL,
		"etcd.logFile": o.path("etcd.log"), "etcd.stopTimeout": "10s",
		"disk.directInterval": "200ms", "disk.qualifySamples": "150", "disk.window": "30", "disk.fsyncClear": "50ms",
		"disk.fsyncWarm": "100ms", "disk.fsyncSlow": "500ms", "disk.stall": "5s", "disk.minFree": "64MiB",
		"timing.interval": "250ms", "timing.callTimeout": "1s", "timing.lockTTL": "12s", "timing.renewEvery": "1s",
		"timing.renewGiveUp": "5s", "timing.stepMargin": "1s", "timing.hostRecordTTL": "10s", "timing.settle": "5500ms",
		"timing.cooldown": "1s", "timing.returnStable": "2s", "timing.promoteStable": "2s", "timing.steadyLag": "1s",
		"timing.learnerStall": "30s",
		"timing.learnerMax":   "2m", "timing.joinBackoff": "5s",
		"control.socket": o.Socket(), "control.group": "root", "metrics.listen": fmt.Sprintf("%q", o.Metrics),
		"paths.state": o.path("state"), "paths.runtime": o.path("run"),
	}
	if o.Shipped {
		maps.DeleteFunc(s, func(key, _ string) bool {
			return strings.HasPrefix(key, "timing.") || key == "disk.directInterval"
		})
	}
	if o.DefaultLimits {
		for _, key := range []string{
			"disk.fsyncClear", "disk.fsyncWarm", "disk.fsyncSlow", "disk.stall", "disk.minFree",
		} {
			delete(s, key)
		}
	}
	if o.ListenClientURL != "" {
		s["etcd.listenClientURL"] = o.ListenClientURL
	}
	if o.ListenPeerURL != "" {
		s["etcd.listenPeerURL"] = o.ListenPeerURL
	}
	maps.Copy(s, o.Set)
	return s
}

func (o HostOptions) path(name string) string { return filepath.Join(o.Dir, name) }

func (o HostOptions) disk(name string) string {
	if o.Disk != "" {
		return filepath.Join(o.Disk, name)
	}
	return filepath.Join(o.Dir, "disk", name)
}

// Socket returns the path of the control socket.
func (o HostOptions) Socket() string { return o.path("s") }

// NewHost creates the host's directory and configuration. It starts nothing.
func NewHost(o HostOptions) (*Host, error) {
	if err := errors.Join(os.MkdirAll(o.Dir, 0o755), os.MkdirAll(o.disk(""), 0o755)); err != nil {
		return nil, err
	}
	h := &Host{Options: o, Client: control.Dial(o.Socket())}
	return h, h.WriteConfig()
}

// configTemplate places the settings in their sections.
const configTemplate = `{{range $key, $value := .}}{{if not (isSection $value)}}{{$key}}: {{$value}}
{{end}}{{end}}{{range $key, $value := .}}{{if isSection $value}}{{$key}}:
{{range $k, $v := $value}}  {{$k}}: {{$v}}
{{end}}{{end}}{{end}}`

// WriteConfig writes the configuration again, for a caller that has changed Options.Set.
func (h *Host) WriteConfig() error {
	tree := map[string]any{}
	for key, value := range h.Options.settings() {
		section, name, nested := strings.Cut(key, ".")
		if !nested {
			tree[key] = value
			continue
		}
		if tree[section] == nil {
			tree[section] = map[string]string{}
		}
		tree[section].(map[string]string)[name] = value
	}
	file, err := os.Create(h.ConfigPath())
	if err != nil {
		return err
	}
	isSection := func(v any) bool { _, is := v.(map[string]string); return is }
	err = template.Must(
		template.New("").Funcs(template.FuncMap{"isSection": isSection}).Parse(configTemplate)).Execute(file, tree)
	return errors.Join(err, file.Close())
}

// ConfigPath returns the path of the configuration.
func (h *Host) ConfigPath() string { return h.Options.path("quorumd.yaml") }

// LogPath returns the path of the agent's log. Every start appends to it.
func (h *Host) LogPath() string { return h.Options.path("quorumd.log") }

// DataDir returns etcd's data directory.
func (h *Host) DataDir() string { return h.Options.disk("etcd") }

// Start starts the agent.
func (h *Host) Start() error {
	log, err := os.OpenFile(h.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own descriptor
	argv := append(append([]string{}, h.Options.Agent...), "--config", h.ConfigPath())
	command := exec.Command(argv[0], argv[1:]...)
	command.Env = append(os.Environ(), h.Options.Env...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // only the parent gets a Ctrl-C, and stops the agent
	if err := command.Start(); err != nil {
		return fmt.Errorf("cannot start the agent of %s: %w", h.Options.Name, err)
	}
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }()
	h.agent, h.ended = command, ended
	return nil
}

// AgentPID returns the process ID of the agent, or 0.
func (h *Host) AgentPID() int {
	if h.agent == nil {
		return 0
	}
	return h.agent.Process.Pid
}

// Ended returns a channel that is closed when the agent has exited.
func (h *Host) Ended() <-chan struct{} { return h.ended }

// Signal sends a signal to the agent. It ignores an agent that has exited.
func (h *Host) Signal(signal syscall.Signal) error {
	if h.agent == nil {
		return nil
	}
	err := h.agent.Process.Signal(signal)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// KillAgent kills the agent and waits until it has exited.
func (h *Host) KillAgent(ctx context.Context) error { return h.endAgent(ctx, syscall.SIGKILL) }

// StopAgent stops the agent cleanly.
func (h *Host) StopAgent(ctx context.Context) error { return h.endAgent(ctx, syscall.SIGTERM) }

func (h *Host) endAgent(ctx context.Context, signal syscall.Signal) error {
	if h.agent == nil {
		return nil
	}
	if err := errors.Join(h.Signal(signal), h.Signal(syscall.SIGCONT)); err != nil {
		return err
	}
	select {
	case <-h.ended:
		h.agent = nil
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the agent of %s does not exit: %w", h.Options.Name, ctx.Err())
	}
}

// unit returns the host's etcd unit as the agent uses it.
func (h *Host) unit() (*systemd.Process, error) {
	return systemd.NewProcess(systemd.ProcessOptions{
		Name: "etcd", Argv: []string{h.Options.Etcd}, Dir: h.Options.path("state"), LogFile: h.Options.path("etcd.log"),
		StopTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
}

// EtcdPID returns the process ID of the host's etcd, or 0.
func (h *Host) EtcdPID(ctx context.Context) (int, error) {
	if _, err := os.Stat(h.Options.path("state")); err != nil {
		return 0, nil // etcd was never started
	}
	unit, err := h.unit()
	if err != nil {
		return 0, err
	}
	defer unit.Close() // the unit was opened only to ask for the process ID
	status, err := unit.Status(ctx)
	return status.PID, err
}

// KillEtcd kills etcd but not the agent, and reports whether etcd was running.
func (h *Host) KillEtcd(ctx context.Context) (bool, error) {
	pid, err := h.EtcdPID(ctx)
	if err != nil || pid == 0 {
		return false, err
	}
	return true, syscall.Kill(pid, syscall.SIGKILL)
}

// Stop stops the agent and then etcd, which outlives the agent.
func (h *Host) Stop(ctx context.Context) error {
	if err := h.StopAgent(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(h.Options.path("state")); err != nil {
		return nil
	}
	unit, err := h.unit()
	if err != nil {
		return err
	}
	defer unit.Close() // an error does not matter, because etcd has been stopped
	if err := unit.Stop(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		status, err := unit.Status(ctx)
		if err != nil || status.PID == 0 {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("etcd of %s does not exit: %w", h.Options.Name, ctx.Err())
		}
	}
}
