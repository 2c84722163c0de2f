// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemdtest

package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	sddbus "github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// instance is the test's own real "systemd --user", with its own bus and unit directory.
type instance struct {
	t      *testing.T
	dir    string // its XDG_RUNTIME_DIR, short enough for sockets
	units  string
	groups []string // its control groups
	cmd    *exec.Cmd
	root   *sddbus.Conn // connection to systemd's private socket, for the setup of the test
}

const remedy = "\ninstall the Debian packages systemd and dbus, and run the tests as root in a place where control " +
	"groups are writable " +
	"(or as a plain user under \"systemd-run --user --scope -p Delegate=yes\")"

// newInstance starts an instance and waits until it answers. It fails the test if that is impossible. policy is
// additional XML for the bus, which by default lets every user do everything.
func newInstance(t *testing.T, policy string) *instance {
	t.Helper()
	for _, program := range []string{"/lib/systemd/systemd", "/usr/bin/dbus-daemon"} {
		if _, err := os.Stat(program); err != nil {
			t.Fatalf("cannot test against systemd: %v%s", err, remedy)
		}
	}
	dir := tempdir.New(t)
	i := &instance{t: t, dir: dir, units: filepath.Join(dir, "units")}
	t.Cleanup(i.stop)
	if err := os.Mkdir(i.units, 0o755); err != nil {
		t.Fatal(err)
	}
	i.writeBus(policy)
	i.makeGroups()
	i.start()
	i.run("dbus.socket")
	return i
}

func (i *instance) private() string { return filepath.Join(i.dir, "systemd", "private") }
func (i *instance) bus() string     { return filepath.Join(i.dir, "bus") }

// writeBus lets the instance start only a message bus, whatever the machine has installed.
func (i *instance) writeBus(policy string) {
	i.writeUnit("basic.target", "[Unit]\nDefaultDependencies=no\n")
	i.writeUnit("dbus.socket", "[Unit]\nDefaultDependencies=no\n[Socket]\nListenStream=%t/bus\n")
	i.writeUnit("dbus.service", "[Unit]\nDefaultDependencies=no\nRequires=dbus.socket\n[Service]\nType=notify\n"+
		"ExecStart=/usr/bin/dbus-daemon --config-file=%t/bus.conf --nofork --nopidfile --systemd-activation\n"+
		"StandardError=append:%t/bus.log\n")
	i.write("bus.conf", `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>systemd:</listen><auth>EXTERNAL</auth>
<policy context="default">
 <allow own="*"/><allow user="*"/><allow send_destination="*" eavesdrop="false"/><allow receive_sender="*"/>
`+policy+`
</policy></busconfig>
`)
}

// makeGroups creates a control group in each hierarchy that systemd uses. Otherwise the new instance would use the
// groups of the test, and kill the processes in them.
func (i *instance) makeGroups() {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		i.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, mount := range mountsOf(fields[1]) {
			if _, err := os.Stat(filepath.Join(mount, "cgroup.procs")); err != nil {
				continue
			}
			group := filepath.Join(mount, fields[2], "quorumd-"+filepath.Base(i.dir))
			if err := os.Mkdir(group, 0o755); err != nil {
				i.t.Fatalf("cannot make a control group for systemd: %v%s", err, remedy)
			}
			i.groups = append(i.groups, group)
		}
	}
	if len(i.groups) == 0 {
		i.t.Fatalf("cannot find the control groups of this process%s", remedy)
	}
}

// mountsOf returns where the hierarchy with these controllers, as in /proc/self/cgroup, may be mounted.
func mountsOf(controllers string) []string {
	switch controllers {
	case "": // cgroup v2
		return []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
	case "name=systemd":
		return []string{"/sys/fs/cgroup/systemd"}
	}
	return nil
}

// start runs the instance. On a machine that does not run systemd, the instance needs a mount namespace in which
// becomeSystemd creates /run/systemd/system, because it detects systemd by that directory.
func (i *instance) start() {
	i.t.Helper()
	log, err := os.Create(filepath.Join(i.dir, "log"))
	if err != nil {
		i.t.Fatal(err)
	}
	defer log.Close()
	i.cmd = exec.Command("/proc/self/exe", i.groups...)
	i.cmd.Stdout, i.cmd.Stderr = log, log
	i.cmd.Env = []string{
		roleVariable + "=systemd", "PATH=" + os.Getenv("PATH"), "HOME=" + i.dir, "XDG_RUNTIME_DIR=" + i.dir,
		"SYSTEMD_UNIT_PATH=" + i.units + ":", "SYSTEMD_LOG_TARGET=console", "SYSTEMD_LOG_LEVEL=info",
	}
	// If this test binary is killed, SIGTERM makes the instance stop its units and exit.
	i.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGTERM}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		i.ownRun()
	}
	if err := i.cmd.Start(); err != nil {
		i.t.Fatalf("cannot start systemd: %v%s", err, remedy)
	}
	eventually(i.t, "systemd answers", func() bool {
		i.root, err = dialTo(i.private(), false)(i.t.Context())
		if stat, _ := statOf(i.cmd.Process.Pid); err != nil && stat != nil && isDead(stat) {
			i.t.Fatalf("systemd ended at once:\n%s%s", i.log(), remedy)
		}
		return err == nil
	})
}

// ownRun puts the instance into its own mount namespace, in which becomeSystemd mounts a separate /run. Root may mount
// it; any other user needs a user namespace for that.
func (i *instance) ownRun() {
	attr := i.cmd.SysProcAttr
	i.cmd.Env = append(i.cmd.Env, "QUORUMD_TEST_OWN_RUN=yes")
	if os.Geteuid() == 0 {
		attr.Unshareflags = unix.CLONE_NEWNS
		return
	}
	same := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	attr.UidMappings, attr.GidMappings = same(os.Geteuid()), same(os.Getegid())
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
}

func (i *instance) log() string {
	var all strings.Builder
	for _, name := range []string{"log", "bus.log"} {
		text, _ := os.ReadFile(filepath.Join(i.dir, name))
		fmt.Fprintf(&all, "%s:\n%s", name, text)
	}
	return all.String()
}

// stop ends the instance with all its units.
func (i *instance) stop() {
	if i.root != nil {
		i.root.Close()
	}
	if i.cmd != nil && i.cmd.Process != nil {
		_ = i.cmd.Process.Signal(unix.SIGTERM)
		stopped := time.AfterFunc(10*time.Second, func() { _ = i.cmd.Process.Kill() })
		if err := i.cmd.Wait(); err != nil {
			i.t.Errorf("systemd failed at its end: %v\n%s", err, i.log())
		}
		stopped.Stop()
	}
	for _, group := range i.groups {
		i.t.Cleanup(func() { removeGroup(i.t, group) })
	}
	if i.t.Failed() {
		i.t.Log(i.log())
	}
}

// removeGroup kills the processes that are still in a control group, and removes the group and those below it.
func removeGroup(t *testing.T, group string) {
	eventually(t, "the control group is empty and gone", func() bool {
		var below []string
		_ = filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				below = append(below, path)
			}
			return nil
		})
		for n := range below {
			path := below[len(below)-1-n]
			procs, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			for _, pid := range strings.Fields(string(procs)) {
				var number int
				if _, err := fmt.Sscan(pid, &number); err == nil && number > 1 {
					_ = unix.Kill(number, unix.SIGKILL)
				}
			}
			_ = os.Remove(path)
		}
		_, err := os.Stat(group)
		return errors.Is(err, fs.ErrNotExist)
	})
}

func (i *instance) write(name, text string) {
	i.t.Helper()
	if err := os.WriteFile(filepath.Join(i.dir, name), []byte(text), 0o644); err != nil {
		i.t.Fatal(err)
	}
}

func (i *instance) writeUnit(name, text string) {
	i.t.Helper()
	i.write(filepath.Join("units", name), text)
}

// service writes a unit for the role of the test binary, enables it as its package would, and makes systemd reload.
func (i *instance) service(name, role, settings string, args ...string) {
	i.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		i.t.Fatal(err)
	}
	i.writeUnit(name, fmt.Sprintf("[Unit]\nDefaultDependencies=no\n[Service]\nEnvironment=%s=%s\nExecStart=%s %s\n"+
		"StandardOutput=append:%s/%s.log\n%s\n", roleVariable, role, exe, strings.Join(args, " "), i.dir, name,
		settings))
	wants := filepath.Join(i.units, "basic.target.wants")
	if err := errors.Join(os.MkdirAll(wants, 0o755), os.Symlink("../"+name, filepath.Join(wants, name))); err != nil {
		i.t.Fatal(err)
	}
	i.reload()
}

func (i *instance) reload() {
	i.t.Helper()
	if err := i.root.ReloadContext(i.t.Context()); err != nil {
		i.t.Fatal(err)
	}
}

// run starts a unit without the code under test, and waits until the unit runs.
func (i *instance) run(unit string) {
	i.t.Helper()
	i.wait(unit, i.root.StartUnitContext)
}

// halt stops a unit without the code under test, and waits until the unit has stopped.
func (i *instance) halt(unit string) {
	i.t.Helper()
	i.wait(unit, i.root.StopUnitContext)
}

func (i *instance) wait(unit string, enqueue func(context.Context, string, string, chan<- string) (int, error)) {
	i.t.Helper()
	result := make(chan string, 1)
	if _, err := enqueue(i.t.Context(), unit, jobMode, result); err != nil {
		i.t.Fatal(err)
	}
	select {
	case got := <-result:
		if got != "done" {
			i.t.Fatalf("%s: %s\n%s", unit, got, i.log())
		}
	case <-time.After(15 * time.Second):
		i.t.Fatalf("%s: no result\n%s", unit, i.log())
	}
}

// drive returns a Service for a unit of the instance, over its bus.
func (i *instance) drive(unit string) *Service {
	i.t.Helper()
	return newService(i.t, Options{Unit: unit, Dial: dialTo(i.bus(), true), EnvironmentFile: i.environmentFile()})
}

func (i *instance) environmentFile() string { return filepath.Join(i.dir, "unit.env") }

// output returns what a unit has written.
func (i *instance) output(unit string) string {
	text, _ := os.ReadFile(filepath.Join(i.dir, unit+".log"))
	return string(text)
}
