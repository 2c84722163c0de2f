// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
)

const (
	maxOutput = 16 << 10 // bytes that are read of what one writes
	// lastWords is how long is waited for who holds the output open when the program itself has ended.
	lastWords = time.Second
)

// output keeps the beginning of what is written to it, and takes the rest.
type output struct{ text []byte }

func (o *output) Write(b []byte) (int, error) {
	o.text = append(o.text, b[:min(len(b), maxOutput-len(o.text))]...)
	return len(b), nil
}

// run runs the program once, and gives what it says. It returns when the program is gone; late is called when its time
// is over, though it may never be, or the disk on which it lies may not answer.
func (p *program) run(ctx context.Context, timeout time.Duration, late func()) health.PluginReading {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(ctx, late)()
	path, why := fit(p.path)
	if why != "" {
		return health.PluginReading{Absent: why}
	}
	var out output
	cmd := exec.Command(path) // no context: the group is killed, and not the program alone
	cmd.Dir, cmd.Stdout = "/", &out
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = lastWords
	if err := cmd.Start(); err != nil {
		return health.PluginReading{Absent: "it cannot be started: " + plain(err.Error())}
	}
	group := cmd.Process.Pid
	giveUp(group)
	stop := context.AfterFunc(ctx, func() { p.kill(group) })
	await(group)
	inTime := stop()
	killGroup(group) // what it has left behind; the number is its own until Wait has taken it in
	err := cmd.Wait()
	switch state := cmd.ProcessState; {
	case !inTime:
		return health.PluginReading{Absent: fmt.Sprintf("it did not end within %s, and was killed", timeout)}
	case state == nil:
		return health.PluginReading{Absent: "it is not known how it ended: " + plain(err.Error())}
	default:
		return said(state.ExitCode(), out.text)
	}
}

// said makes a reading of what a program has left.
func said(code int, text []byte) health.PluginReading {
	line, figures := parse(text)
	r := health.PluginReading{Text: line, Figures: figures}
	switch code {
	case 0:
		r.State = health.OK
	case 1:
		r.State = health.Warm
	case 2:
		r.State = health.Slow
	case 3:
		r.Absent = "it says UNKNOWN"
	case -1:
		r.Absent = "a signal has ended it"
	default:
		r.Absent = "its exit code is " + strconv.Itoa(code) + ", which no Nagios plugin has"
	}
	return r
}

// await waits until the program has ended, and leaves it to be taken in: until then nobody else gets its number.
func await(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

func killGroup(group int) { _ = unix.Kill(-group, unix.SIGKILL) }

// giveUp has the kernel end the program, and not the agent, where memory is short. It is no promise: what cannot be
// written stays as it is.
func giveUp(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
}

// fit gives the program behind a path, or why it is not run: somebody might have changed it who may not say what
// quorumd runs. A link is followed, as /usr/lib/nagios/plugins is where plugins lie.
func fit(path string) (string, string) {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "there is no " + path
	}
	if err != nil {
		return "", plain(err.Error())
	}
	for _, place := range []string{filepath.Dir(path), filepath.Dir(target), target} {
		info, err := os.Stat(place)
		if err != nil {
			return "", plain(err.Error())
		}
		owner, known := info.Sys().(*syscall.Stat_t)
		if !known || owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
			return "", place + " does not belong to root: chown root:root"
		}
		if info.Mode()&0o022 != 0 {
			return "", "others than its owner may write " + place + ": chmod go-w"
		}
		if place == target && (!info.Mode().IsRegular() || info.Mode()&0o111 == 0) {
			return "", "it is no program: make it executable (chmod +x), or move it away"
		}
	}
	return target, ""
}
