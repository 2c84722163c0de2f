// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package externalcheck

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/execshim"
	"github.com/quorumd/quorumd/health"
)

const (
	maxOutput = 16 << 10 // maximum bytes kept of a program's output
	// outputDelay is how long to read output after the program has ended, if other processes still have it open.
	outputDelay = time.Second
)

// output keeps the first maxOutput bytes that are written to it, and discards the rest.
type output struct{ text []byte }

func (o *output) Write(b []byte) (int, error) {
	o.text = append(o.text, b[:min(len(b), maxOutput-len(o.text))]...)
	return len(b), nil
}

// run runs the program once and returns its result, after the program has ended. It calls late when the time limit has
// passed or the context ends, because the program may never end, and its disk may never answer.
func (p *program) run(ctx context.Context, timeout time.Duration, late func()) health.ExternalCheckReading {
	code, text, absent := p.execute(ctx, timeout, late)
	if absent != "" {
		return health.ExternalCheckReading{Absent: absent}
	}
	return readingOf(code, text)
}

// Output runs a program once, with the same precautions as a check, and returns the first 16 KiB of its output. child
// is the command line that calls [Main]. Output returns an error unless the program succeeds within the timeout. It
// returns only after the program has ended.
func Output(ctx context.Context, child []string, path string, timeout time.Duration) ([]byte, error) {
	p := &program{path: path, child: child, kill: killGroup}
	code, text, absent := p.execute(ctx, timeout, func() {})
	switch {
	case absent != "":
		return nil, fmt.Errorf("%s: %s", path, absent)
	case code < 0:
		return nil, fmt.Errorf("%s: it was killed by a signal", path)
	case code > 0:
		return nil, fmt.Errorf("%s: its exit code is %d", path, code)
	}
	return text, nil
}

// execute runs the program and returns its exit code, negative after a signal, and its output. If there is no result,
// absent is the reason.
func (p *program) execute(ctx context.Context, timeout time.Duration, late func()) (code int, text []byte,
	absent string,
) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(ctx, late)()
	var out output
	// The command has no context, because p.kill ends the whole group and not only the program.
	cmd := execshim.New(context.Background(), p.child, p.path)
	cmd.Dir, cmd.Stdout = "/", &out
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = outputDelay
	if err := cmd.Start(); err != nil {
		return 0, nil, "it cannot be started: " + sanitize(err.Error())
	}
	group := cmd.Process.Pid
	stop := context.AfterFunc(ctx, func() { p.kill(group) })
	await(group)
	inTime := stop()
	killGroup(group) // kills the remaining processes; the kernel does not reuse the ID before Wait returns
	err := cmd.Wait()
	refused, is := errors.AsType[execshim.RefusedError](err)
	switch state := cmd.ProcessState; {
	case !inTime:
		return 0, nil, fmt.Sprintf("it did not finish within %s and was killed", durationfmt.Text(timeout))
	case is:
		return 0, nil, sanitize(string(refused))
	case state == nil:
		return 0, nil, "its result is unknown: " + sanitize(err.Error())
	default:
		return state.ExitCode(), out.text, ""
	}
}

// readingOf returns the reading for a program's exit code and output.
func readingOf(code int, text []byte) health.ExternalCheckReading {
	line, figures := parse(text)
	r := health.ExternalCheckReading{Text: line, Figures: figures}
	switch code {
	case 0:
		r.State = health.OK
	case 1:
		r.State = health.Warm
	case 2:
		r.State = health.Slow
	case 3:
		r.Absent = "it reports UNKNOWN"
	case -1:
		r.Absent = "it was killed by a signal"
	default:
		r.Absent = "its exit code is " + strconv.Itoa(code) + ", which is not a Nagios status"
	}
	return r
}

// await waits until the program has ended, without reaping it, so that the kernel does not reuse its process ID.
func await(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

func killGroup(group int) { _ = unix.Kill(-group, unix.SIGKILL) }
