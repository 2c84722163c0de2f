// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	sddbus "github.com/coreos/go-systemd/v22/dbus"
)

// resultGrace is how long to wait for the result of a job that systemd no longer lists. The result and the list arrive
// over different connections, so the result can be a little late. If the bus was restarted in between, the result never
// arrives.
const resultGrace = time.Second

// jobMode lets a new job replace one that contradicts it, as systemctl does.
const jobMode = "replace"

// Options describe the unit that a Service drives.
type Options struct {
	// Unit is the full name, such as "etcd.service".
	Unit string
	// EnvironmentFile is the absolute path of the file that SetEnvironment writes and the unit reads through
	// EnvironmentFile=. If it is empty, SetEnvironment and Environment return errors.
	EnvironmentFile string
	// Orders makes all changes with the necessary privileges. If it is nil, the Service makes them itself.
	Orders Orders
	// Dial connects to systemd; nil for the system bus.
	Dial DialFunc
	// Logger logs important events; nil for slog.Default.
	Logger *slog.Logger
}

// Orders change a unit.
type Orders interface {
	// Drive queues a job for the unit: "start", "stop" or "restart".
	Drive(ctx context.Context, verb string) error
	// SetEnvironment writes the environment file.
	SetEnvironment(ctx context.Context, vars map[string]string) error
}

// Service is a systemd unit, driven over D-Bus. It connects at its first use, and reconnects after a loss of the
// connection. Safe for concurrent use.
type Service struct {
	unit            string
	environmentFile string
	orders          Orders
	log             *slog.Logger
	bus             *bus

	mu      sync.Mutex
	job     *queuedJob // the last job queued by this Service; nil if there is none or its result is known
	lastJob string
}

// queuedJob is a job whose result is awaited.
type queuedJob struct {
	verb   string
	result chan string // systemd's result; buffered, so that the sender never blocks
	dialed int         // number of the connection on which the job was queued; the result arrives only there
	goneAt time.Time   // when systemd first reported the unit without the job
}

var unitName = regexp.MustCompile(`^[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\-]+)?\.service$`)

// NewService checks the options. It does not connect yet.
func NewService(o Options) (*Service, error) {
	if !unitName.MatchString(o.Unit) || len(o.Unit) > 255 {
		return nil, fmt.Errorf("cannot drive unit %q: that is not a service name: write it in full, such as "+
			"\"etcd.service\"", o.Unit)
	}
	if f := o.EnvironmentFile; f != "" && (!filepath.IsAbs(f) || strings.ContainsAny(f, "*?[\n")) {
		return nil, fmt.Errorf("cannot use environment file %q: give an absolute path without wildcards", f)
	}
	if o.Dial == nil {
		o.Dial = sddbus.NewSystemConnectionContext
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	log := o.Logger.With("unit", o.Unit)
	return &Service{
		unit: o.Unit, environmentFile: o.EnvironmentFile, orders: o.Orders, log: log,
		bus: newBus(o.Dial, log),
	}, nil
}

// Start queues a start job. If the unit is already active, that is not an error. Without Orders, Start returns within 3
// s: nil if systemd has accepted the job, otherwise ErrNotInstalled, ErrNotPermitted, ErrUnavailable or a different
// error.
func (s *Service) Start(ctx context.Context) error {
	return s.queue(ctx, "start", true, (*sddbus.Conn).StartUnitContext)
}

// Stop queues a stop job, like Start. If the unit is already inactive, that is not an error.
func (s *Service) Stop(ctx context.Context) error {
	return s.queue(ctx, "stop", true, (*sddbus.Conn).StopUnitContext)
}

// Restart queues a restart job, like Start. An inactive unit is started. If the connection is lost during the call,
// Restart does not send the job again, because the unit could then restart twice.
func (s *Service) Restart(ctx context.Context) error {
	return s.queue(ctx, "restart", false, (*sddbus.Conn).RestartUnitContext)
}

// File returns the path of the file from which systemd has loaded the unit. A transient unit counts as not installed.
func (s *Service) File(ctx context.Context) (string, error) {
	var p properties
	err := s.bus.call(ctx, true, func(ctx context.Context, conn *sddbus.Conn) error {
		var err error
		p, err = conn.GetAllPropertiesContext(ctx, s.unit)
		return err
	})
	if err != nil {
		return "", explainBus("inspect "+s.unit, s.unit, err)
	}
	path := property[string](p, "FragmentPath")
	if state := property[string](p, "LoadState"); state != "loaded" || path == "" || property[bool](p, "Transient") {
		if path != "" {
			state += " from " + path
		}
		return "", fmt.Errorf("%w: systemd reports LoadState %s: install the unit or, if it is masked, unmask it: "+
			"\"systemctl unmask %s\"", ErrNotInstalled, state, s.unit)
	}
	return path, nil
}

// Close ends the connection and undoes nothing: the unit stays as it is and a queued job continues.
func (s *Service) Close() error {
	s.bus.close()
	return nil
}

type queueFunc func(*sddbus.Conn, context.Context, string, string, chan<- string) (int, error)

// queue queues a job for the unit. Without Orders, it also keeps the channel for the result of the job.
func (s *Service) queue(ctx context.Context, verb string, again bool, enqueue queueFunc) error {
	if s.orders != nil {
		if err := s.orders.Drive(ctx, verb); err != nil {
			return err
		}
		s.log.Info("job queued by the root helper", "job", verb)
		return nil
	}
	err := s.bus.call(ctx, again, func(ctx context.Context, conn *sddbus.Conn) error {
		job := &queuedJob{verb: verb, result: make(chan string, 1), dialed: s.bus.dialed}
		if _, err := enqueue(conn, ctx, s.unit, jobMode, job.result); err != nil {
			return err
		}
		s.mu.Lock()
		s.job, s.lastJob = job, ""
		s.mu.Unlock()
		s.log.Info("job queued", "job", verb)
		return nil
	})
	return explainBus(verb+" "+s.unit, s.unit, err)
}

// settleJob takes the result of this Service's job if it has arrived, or drops the job if its result can no longer
// arrive. It returns the job still pending and the result of the last one. pending is systemd's current job for the
// unit, and dialed is the number of the connection that reported it.
func (s *Service) settleJob(pending string, dialed int, now time.Time) (job, lastJob string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.job == nil {
		return pending, s.lastJob
	}
	select {
	case result := <-s.job.result:
		s.endJob(result)
		return pending, s.lastJob
	default:
	}
	switch {
	case pending != "":
		s.job.goneAt = time.Time{}
		return pending, ""
	case s.job.goneAt.IsZero() && dialed <= s.job.dialed:
		s.job.goneAt = now
	case dialed > s.job.dialed, now.Sub(s.job.goneAt) > resultGrace:
		s.endJob("unknown")
		return "", s.lastJob
	}
	return s.job.verb, ""
}

func (s *Service) endJob(result string) {
	level := slog.LevelInfo
	if result != "done" {
		level = slog.LevelWarn
	}
	s.log.Log(context.Background(), level, "job ended", "job", s.job.verb, "result", result)
	s.job, s.lastJob = nil, result
}

var errNoEnvironmentFile = errors.New("no environment file was configured: name one")
