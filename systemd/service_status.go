// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"fmt"
	"syscall"
	"time"

	sddbus "github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sys/unix"
)

// Status queries the unit. A missing unit is Inactive with LoadState "not-found", without an error. On an error, such
// as ErrUnavailable or ErrNotPermitted, the state is Unknown.
func (s *Service) Status(ctx context.Context) (Status, error) {
	var p properties
	var pending string
	var dialed int
	err := s.bus.call(ctx, true, func(ctx context.Context, conn *sddbus.Conn) error {
		var err error
		if p, err = conn.GetAllPropertiesContext(ctx, s.unit); err != nil {
			return err
		}
		pending, err = jobType(ctx, conn, p)
		dialed = s.bus.dialed
		return err
	})
	if err != nil {
		return Status{ExitCode: -1}, explainBus("inspect "+s.unit, s.unit, err)
	}
	now, err := clock(unix.CLOCK_MONOTONIC)
	if err != nil {
		return Status{ExitCode: -1}, err
	}
	st := p.status(now)
	st.Job, st.LastJob = s.settleJob(pending, dialed, time.Now())
	return st, nil
}

// jobType returns the type of the job pending for the unit with these properties, "" if none.
func jobType(ctx context.Context, conn *sddbus.Conn, p properties) (string, error) {
	id := p.jobID()
	if id == 0 {
		return "", nil
	}
	jobs, err := conn.ListJobsContext(ctx)
	if err != nil {
		return "", err
	}
	for _, j := range jobs {
		if j.Id == id {
			return j.JobType, nil
		}
	}
	return "", nil // the job ended between the two requests
}

// properties are those of a unit's org.freedesktop.systemd1.Unit and .Service interfaces, see
// org.freedesktop.systemd1(5). A property that a version of systemd lacks reads as zero.
type properties map[string]any

func property[T any](p properties, name string) T {
	v, _ := p[name].(T)
	return v
}

// status converts the properties to a Status, without the jobs. now is the time since boot by CLOCK_MONOTONIC, which
// systemd's time stamps use.
func (p properties) status(now time.Duration) Status {
	st := Status{
		State:     p.state(),
		PID:       int(property[uint32](p, "MainPID")),
		Since:     p.since(now),
		Result:    property[string](p, "Result"),
		ExitCode:  -1,
		LoadState: property[string](p, "LoadState"),
		Program:   p.program(),

		UnitFileState: property[string](p, "UnitFileState"),
	}
	status := property[int32](p, "ExecMainStatus")
	switch property[int32](p, "ExecMainCode") { // si_code of waitid(2)
	case 1: // CLD_EXITED
		st.ExitCode = int(status)
	case 2, 3: // CLD_KILLED, CLD_DUMPED
		st.Signal = signalName(syscall.Signal(status))
	}
	return st
}

func (p properties) state() State {
	switch property[string](p, "ActiveState") {
	case "active", "reloading", "refreshing":
		return Active
	case "inactive", "maintenance":
		return Inactive
	case "activating":
		return Activating
	case "deactivating":
		return Deactivating
	case "failed":
		return Failed
	}
	return Unknown
}

// since returns for how long the unit has been in its state, 0 if unknown. StateChangeTimestamp would be wrong for
// Active, Inactive and Failed, because every reload updates it.
func (p properties) since(now time.Duration) time.Duration {
	name := "StateChangeTimestampMonotonic"
	switch p.state() {
	case Active:
		name = "ActiveEnterTimestampMonotonic"
	case Inactive, Failed:
		name = "InactiveEnterTimestampMonotonic"
	}
	stamp := time.Duration(property[uint64](p, name)) * time.Microsecond
	if stamp == 0 {
		return 0
	}
	return max(0, now-stamp)
}

// program returns the path of the first command of ExecStart=. The property is a list of structs whose first field is
// the path.
func (p properties) program() string {
	commands := property[[][]any](p, "ExecStart")
	if len(commands) == 0 || len(commands[0]) == 0 {
		return ""
	}
	path, _ := commands[0][0].(string)
	return path
}

// jobID returns the number of the job pending for the unit, 0 if none. The property is a pair of that number and an
// object path.
func (p properties) jobID() uint32 {
	pair := property[[]any](p, "Job")
	if len(pair) == 0 {
		return 0
	}
	id, _ := pair[0].(uint32)
	return id
}

// signalName returns the name of a signal, such as "SIGTERM"; "" for 0.
func signalName(s syscall.Signal) string {
	if s == 0 {
		return ""
	}
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}

// clock reads one of the kernel's clocks that count from boot.
func clock(id int32) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, fmt.Errorf("cannot read the time since boot: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}
