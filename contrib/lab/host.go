// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Host is one host. Use it from one goroutine at a time; different hosts may be used concurrently.
type Host struct {
	Name    string // n1, n2, …
	Address string
	Disk    *Disk // holds etcd's data
	State   *Disk // holds quorumd's own files

	number int
	lab    *Lab
	dir    string

	mu         sync.Mutex
	supervisor int           // the process of systemd-nspawn
	poweredOff bool          // supervise must not boot the host again
	ended      chan struct{} // closed when the host is off, and not rebooting; nil before the first start
}

const consoleName = "console.log"

// rebootCode is the exit code of systemd-nspawn when the host reboots.
const rebootCode = 133

// Root returns the path of the host's root file system on the machine, even while the host is off. It does not show
// file systems that are mounted only inside the host, such as /run and the host's disks.
func (h *Host) Root() string { return filepath.Join(h.dir, "root") }

// Path returns the path on the machine of a file of a running host.
func (h *Host) Path(path string) string {
	pid, _ := h.PID()
	return fmt.Sprintf("/proc/%d/root%s", pid, path)
}

// prepare creates the host's disks and root file system.
func (h *Host) prepare(ctx context.Context) error {
	upper, work := filepath.Join(h.dir, "upper"), filepath.Join(h.dir, "work")
	for _, dir := range []string{upper, work, h.Root()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	h.Disk = &Disk{dir: filepath.Join(h.dir, savedDisk), holds: "/var/lib/etcd", size: diskSize}
	h.State = &Disk{dir: filepath.Join(h.dir, savedState), holds: "/var/lib/quorumd", size: stateSize}
	if err := h.Disk.make(ctx, h.lab.options.Faultfs, h.saved(savedDisk)); err != nil {
		return err
	}
	if err := h.State.make(ctx, "", h.saved(savedState)); err != nil {
		return err
	}
	lower := h.lab.options.Root
	if files := h.saved(savedFiles); files != "" {
		lower = files + ":" + lower
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work)
	if err := syscall.Mount("overlay", h.Root(), "overlay", 0, layers); err != nil {
		return fmt.Errorf("cannot put %s over %s: %w; the lab's files must not be on an overlay themselves", upper,
			h.lab.options.Root, err)
	}
	if h.lab.options.From != "" {
		return nil // the host already has its identity
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	if err != nil {
		return err
	}
	names := "127.0.0.1 localhost\n"
	for _, o := range h.lab.Hosts {
		names += o.Address + " " + o.Name + "\n"
	}
	for path, text := range map[string]string{
		"etc/machine-id": strings.ReplaceAll(string(id), "-", ""), "etc/hostname": h.Name + "\n", "etc/hosts": names,
		"etc/systemd/logind.conf.d/lab.conf": "[Login]\nInhibitDelayMaxSec=" + ShutdownDelay.String() + "\n",
	} {
		if err := h.Write(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ShutdownDelay is how long a host's logind waits for inhibitors before a shutdown. It is twice the usual time, because
// hosts that share two cores are slower than a separate machine.
const ShutdownDelay = 10 * time.Second

// The files that Save keeps of a host.
const (
	savedFiles = "files" // what the host has written over the root file system
	savedDisk  = "disk"
	savedState = "state"
)

// saved returns the path of something that Save has kept of this host, or "" for a bare host.
func (h *Host) saved(name string) string {
	if h.lab.options.From == "" {
		return ""
	}
	return filepath.Join(h.lab.options.From, h.Name, name)
}

// save moves the files of a powered-off host to a directory.
func (h *Host) save(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := errors.Join(h.Disk.detach(ctx), h.State.detach(ctx), syscall.Unmount(h.Root(), 0)); err != nil {
		return err
	}
	return errors.Join(
		os.Rename(h.Disk.image(), filepath.Join(dir, savedDisk)),
		os.Rename(h.State.image(), filepath.Join(dir, savedState)),
		os.Rename(filepath.Join(h.dir, "upper"), filepath.Join(dir, savedFiles)),
	)
}

// disks returns all disks of the host; none before prepare.
func (h *Host) disks() []*Disk {
	if h.State == nil {
		return nil
	}
	return []*Disk{h.Disk, h.State}
}

// furnish creates the source directory of a new disk, with the owner and the mode of the mount point in the root file
// system.
func (h *Host) furnish(d *Disk) error {
	dir := d.source()
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var s syscall.Stat_t
	if err := syscall.Stat(filepath.Join(h.Root(), d.holds), &s); err != nil {
		return nil //nolint:nilerr // the package that is installed later creates it
	}
	return errors.Join(os.Chown(dir, int(s.Uid), int(s.Gid)), os.Chmod(dir, os.FileMode(s.Mode).Perm()))
}

// Renew replaces both disks of a powered-off host with new, empty ones. It fails in a lab with Options.Faultfs.
func (h *Host) Renew(ctx context.Context) error {
	if h.on() {
		return fmt.Errorf("cannot renew the disks of %s: it is on", h.Name)
	}
	for _, d := range h.disks() {
		if d.mount != nil {
			return fmt.Errorf("cannot renew the disks of %s: the lab was created with Options.Faultfs", h.Name)
		}
		if err := errors.Join(os.Remove(d.image()), d.make(ctx, "", "")); err != nil {
			return err
		}
	}
	return nil
}

// PowerOn starts a host that is off. It does not wait for the boot; Booted does.
func (h *Host) PowerOn(ctx context.Context) error {
	if h.on() {
		return fmt.Errorf("cannot start %s: it is on", h.Name)
	}
	for _, d := range h.disks() {
		if err := d.attach(ctx); err != nil {
			return err
		}
		if err := h.furnish(d); err != nil {
			return err
		}
	}
	if err := h.plug(ctx); err != nil {
		return err
	}
	groups, err := makeGroups(h.lab.name(), h.Name)
	if err != nil {
		return err
	}
	console, err := os.OpenFile(filepath.Join(h.dir, consoleName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.poweredOff, h.ended = false, make(chan struct{})
	h.mu.Unlock()
	go h.supervise(groups, console)
	return nil
}

// supervise boots the host, and boots it again whenever it reboots.
func (h *Host) supervise(groups []string, console *os.File) {
	runtime.LockOSThread() // the kernel kills the child when the thread that started it ends
	defer runtime.UnlockOSThread()
	defer close(h.ended)
	defer console.Close()
	for {
		cmd := h.boot(groups)
		cmd.Stdout, cmd.Stderr = console, console
		h.mu.Lock()
		if h.poweredOff {
			h.mu.Unlock()
			return
		}
		err := cmd.Start()
		if err == nil {
			h.supervisor = cmd.Process.Pid
		}
		h.mu.Unlock()
		if err != nil {
			fmt.Fprintf(console, "lab: cannot boot: %v\n", err)
			return
		}
		_ = cmd.Wait() // cmd.ProcessState contains the result
		fmt.Fprintf(console, "lab: %s ended: %v\n", h.Name, cmd.ProcessState)
		h.mu.Lock()
		h.supervisor = 0
		h.mu.Unlock()
		if cmd.ProcessState.ExitCode() != rebootCode {
			return
		}
	}
}

// boot returns the command that boots the host. A shell first moves itself into the host's control groups.
func (h *Host) boot(groups []string) *exec.Cmd {
	enter := ""
	for _, dir := range groups {
		enter += "echo $$ >" + dir + "/cgroup.procs && "
	}
	args := []string{
		"-c", enter + `exec "$@"`, "sh",
		"systemd-nspawn", "--directory=" + h.Root(), "--boot", "--register=no", "--keep-unit", "--machine=" + h.Name,
		"--network-namespace-path=/run/netns/" + h.Name, "--resolv-conf=off", "--timezone=off", "--link-journal=no",
		// CAP_NET_ADMIN is safe to grant, because the host has its own network namespace
		"--console=pipe", "--capability=CAP_IPC_LOCK,CAP_NET_ADMIN",
	}
	for _, d := range h.disks() {
		args = append(args, "--bind="+d.source()+":"+d.holds)
	}
	cmd := exec.Command("sh", args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1", "SYSTEMD_NSPAWN_API_VFS_WRITABLE=network")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (h *Host) on() bool {
	h.mu.Lock()
	ended := h.ended
	h.mu.Unlock()
	if ended == nil {
		return false
	}
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// PID returns the process ID of the host's first process, as the program that runs the lab sees it.
func (h *Host) PID() (int, error) {
	h.mu.Lock()
	supervisor := h.supervisor
	h.mu.Unlock()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", supervisor))
	for _, list := range lists {
		children, _ := os.ReadFile(list) // the thread may have ended
		for _, child := range strings.Fields(string(children)) {
			status, _ := os.ReadFile("/proc/" + child + "/status")
			for line := range strings.Lines(string(status)) {
				if strings.HasPrefix(line, "NSpid:") && strings.HasSuffix(line, "\t1\n") {
					return strconv.Atoi(child)
				}
			}
		}
	}
	return 0, errors.Join(fmt.Errorf("cannot find the first process of %s: it is off or still booting", h.Name), err)
}

// Booted waits until the host has booted: all its services run, or some have failed.
func (h *Host) Booted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootBound)
	defer cancel()
	return until(ctx, h.Name+" has booted", func() bool {
		state, _ := h.Run(ctx, "systemctl", "is-system-running") // the command fails if any service has failed
		state = strings.TrimSpace(state)
		return state == "running" || state == "degraded"
	})
}

// Run runs a command on the host as root and returns its standard output. The error contains its standard error.
func (h *Host) Run(ctx context.Context, argv ...string) (string, error) {
	cmd, err := h.Command(ctx, argv...)
	if err != nil {
		return "", err
	}
	return output(cmd)
}

// Shell runs a shell command line on the host and returns its standard output.
func (h *Host) Shell(ctx context.Context, line string) (string, error) {
	return h.Run(ctx, "sh", "-c", line)
}

// Command returns a command that will run on the host.
func (h *Host) Command(ctx context.Context, argv ...string) (*exec.Cmd, error) {
	pid, err := h.PID()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, "nsenter", EnterArgs(pid, argv...)...), nil
}

// EnterArgs returns the arguments of nsenter for a command on the host whose first process has the given ID.
func EnterArgs(pid int, argv ...string) []string {
	return append([]string{
		"-t", strconv.Itoa(pid), "-m", "-u", "-i", "-n", "-p", "-C", "--root", "--wd", "--",
		"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8",
		"TERM=xterm",
	}, argv...)
}

// PowerLoss cuts the host's power: its network disappears without a packet, unflushed writes to its disks are lost, and
// every process ends at once.
func (h *Host) PowerLoss(ctx context.Context) error {
	pid, err := h.PID()
	if err != nil {
		return err
	}
	if _, err := machine(ctx, "", "ip", "link", "set", h.port(), "down"); err != nil {
		return err
	}
	if err := errors.Join(h.Disk.cutPower(), h.State.cutPower()); err != nil {
		return err
	}
	h.mu.Lock()
	h.poweredOff = true
	supervisor := h.supervisor
	h.mu.Unlock()
	if err := errors.Join(kill(pid), kill(supervisor)); err != nil {
		return err
	}
	return h.settle(ctx)
}

// kill kills a process. Killing the first process of a host ends all processes there. kill ignores a process that has
// ended.
func kill(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// ShutDown shuts the host down cleanly.
func (h *Host) ShutDown(ctx context.Context) error {
	if _, err := h.Run(ctx, "systemctl", "poweroff"); err != nil && h.on() {
		return err
	}
	return h.settle(ctx)
}

// settle waits until a host that is shutting down is off, and releases its network and its disks.
func (h *Host) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootBound)
	defer cancel()
	select {
	case <-h.ended:
	case <-ctx.Done():
		return fmt.Errorf("%s did not shut down in time: %w", h.Name, ctx.Err())
	}
	return errors.Join(h.unplug(ctx), h.Disk.detach(ctx), h.State.detach(ctx))
}

// discard removes the files of a powered-off host.
func (h *Host) discard(ctx context.Context) error {
	var err error
	for _, d := range h.disks() {
		err = errors.Join(err, d.discard(ctx))
	}
	if unmountErr := syscall.Unmount(h.Root(), 0); unmountErr != nil && !errors.Is(unmountErr, syscall.EINVAL) {
		err = errors.Join(err, fmt.Errorf("cannot unmount %s: %w", h.Root(), unmountErr))
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(h.dir)
}

// Reboot reboots the host cleanly, and waits until it is up.
func (h *Host) Reboot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootBound)
	defer cancel()
	before, err := h.PID()
	if err != nil {
		return err
	}
	if _, err := h.Run(ctx, "reboot"); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return err
	}
	// Check from outside: a command that enters a host during its shutdown is not a child of systemd, and would delay
	// the shutdown.
	err = until(ctx, h.Name+" reboots", func() bool {
		now, err := h.PID()
		return err == nil && now != before
	})
	if err != nil {
		return err
	}
	return h.Booted(ctx)
}

// BootID returns the ID of the host's current boot.
func (h *Host) BootID(ctx context.Context) (string, error) {
	return h.Run(ctx, "cat", "/proc/sys/kernel/random/boot_id")
}

// Console returns what was written to the host's console since its first start.
func (h *Host) Console() string {
	text, _ := os.ReadFile(filepath.Join(h.dir, consoleName)) // the file is missing before the first start
	return string(text)
}

// Write writes a file on the host and creates missing directories.
func (h *Host) Write(path, text string, mode os.FileMode) error {
	full := filepath.Join(h.Root(), path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	return os.WriteFile(full, []byte(text), mode)
}

// Copy copies a file of the machine to the host and creates missing directories.
func (h *Host) Copy(source, path string) error {
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	return h.Write(path, string(text), info.Mode().Perm())
}

// Signal sends a signal, such as "KILL" or "STOP", to the main process of a unit.
func (h *Host) Signal(ctx context.Context, unit, signal string) error {
	_, err := h.Run(ctx, "systemctl", "kill", "--kill-who=main", "--signal="+signal, unit)
	return err
}

// MainPID returns the process ID of a unit's main process, as the host sees it; 0 if there is none.
func (h *Host) MainPID(ctx context.Context, unit string) (int, error) {
	text, err := h.Property(ctx, unit, "MainPID")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// Property returns the value of a unit's property.
func (h *Host) Property(ctx context.Context, unit, name string) (string, error) {
	text, err := h.Run(ctx, "systemctl", "show", "--value", "--property="+name, unit)
	return strings.TrimSpace(text), err
}

// Journal returns the last lines of a unit in the journal.
func (h *Host) Journal(ctx context.Context, unit string, lines int) (string, error) {
	return h.Run(ctx, "journalctl", "--no-pager", "--unit="+unit, "--lines="+strconv.Itoa(lines), "--output=short-iso")
}

// bootBound is how long a boot or a shutdown may take. On an idle machine, either takes half a second.
const bootBound = 90 * time.Second
