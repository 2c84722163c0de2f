// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	cgroups = "/sys/fs/cgroup"
	// bootTimeout is many times the duration of a boot. commandTimeout is many times the duration of the slowest
	// command.
	bootTimeout    = time.Minute
	commandTimeout = 2 * time.Minute
)

// host is a booted Debian in a container. systemd is PID 1, and the container has its own network and disk.
type host struct {
	t       *testing.T
	root    string // the path of its files on this machine
	boss    *exec.Cmd
	pid1    int
	console string // the file with its console output
}

// bookworm is the oldest Debian that the packages support, and trixie the next release.
const (
	bookworm = "root"
	trixie   = "root-trixie"
)

// bootHost boots a host of Debian 12 with these files in /pk.
func bootHost(t *testing.T, files ...string) *host {
	t.Helper()
	return bootDebian(t, bookworm, files...)
}

// bootDebian boots a host from a cached root, with these files in /pk. All its parts (mounts, processes, network) live
// in namespaces that end with the supervisor, which ends with the test.
func bootDebian(t *testing.T, root string, files ...string) *host {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"upper/pk", "upper/etc", "work", "root"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		copyFile(t, file, filepath.Join(dir, "upper/pk", filepath.Base(file)))
	}
	write(t, filepath.Join(dir, "upper/etc/hostname"), "n1\n")
	write(t, filepath.Join(dir, "upper/etc/hosts"), "127.0.0.1 localhost n1\n")
	write(t, filepath.Join(dir, "upper/etc/machine-id"),
		strings.ReplaceAll(read(t, "/proc/sys/kernel/random/uuid"), "-", ""))

	group := "quorumd-packages-" + strconv.Itoa(os.Getpid()) + "-" + filepath.Base(filepath.Dir(dir))
	script := fmt.Sprintf(`set -e
mount -t overlay host -o lowerdir=%[1]s,upperdir=%[2]s/upper,workdir=%[2]s/work %[2]s/root
for h in systemd unified freezer ''; do # without separate groups, two systemds would fight over one
	[ -e %[3]s/$h/cgroup.procs ] || continue
	mkdir -p %[3]s/$h/%[4]s && echo $$ >%[3]s/$h/%[4]s/cgroup.procs
done
status=133 # nspawn ends with it when the host reboots
while [ $status = 133 ]; do
status=0
setpriv --pdeathsig KILL systemd-nspawn -q -D %[2]s/root --boot --register=no --keep-unit --machine=quorumd-pk --private-network \
	--resolv-conf=off --timezone=off --link-journal=no --console=pipe --capability=CAP_BPF,CAP_IPC_LOCK \
	--system-call-filter="bpf adjtimex" || status=$?
done
`, cached(t, root), dir, cgroups, group)
	h := &host{t: t, boss: exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", script)}
	h.boss.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1", "SYSTEMD_NSPAWN_API_VFS_WRITABLE=network")
	h.boss.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	h.console = filepath.Join(dir, "console")
	console, err := os.Create(h.console)
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	h.boss.Stdout, h.boss.Stderr = console, console
	if err := h.boss.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.end(group) })
	h.waitUntil(bootTimeout, "the host is up", func() bool {
		h.pid1 = payload(h.boss.Process.Pid)
		if h.pid1 == 0 {
			return false
		}
		state, _ := h.try("systemctl is-system-running")
		return strings.HasPrefix(state, "running") || strings.HasPrefix(state, "degraded")
	})
	h.root = fmt.Sprintf("/proc/%d/root", h.pid1)
	return h
}

// waitForReboot waits until the host is up again after the boot with that ID. After all units have ended, systemd waits
// up to 90 s for the remaining processes, kills them, and waits up to 90 s again.
func (h *host) waitForReboot(boot string) {
	h.t.Helper()
	h.waitUntil(3*time.Minute+bootTimeout, "the host is up again", func() bool {
		if h.pid1 = payload(h.boss.Process.Pid); h.pid1 == 0 {
			return false
		}
		now, err := h.try("cat /proc/sys/kernel/random/boot_id")
		if err != nil || now == boot {
			return false
		}
		state, _ := h.try("systemctl is-system-running")
		return strings.HasPrefix(state, "running") || strings.HasPrefix(state, "degraded")
	})
	h.root = fmt.Sprintf("/proc/%d/root", h.pid1)
}

// payload returns the process below the supervisor that is PID 1 of its own namespace.
func payload(boss int) int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", boss))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(text)) {
			status, _ := os.ReadFile("/proc/" + child + "/status")
			for line := range strings.Lines(string(status)) {
				if f := strings.Fields(line); len(f) > 2 && f[0] == "NSpid:" && f[len(f)-1] == "1" {
					pid, _ := strconv.Atoi(child)
					return pid
				}
			}
			if below, _ := strconv.Atoi(child); below > 0 {
				if pid := payload(below); pid != 0 {
					return pid
				}
			}
		}
	}
	return 0
}

func (h *host) end(group string) {
	if h.pid1 != 0 {
		_ = syscall.Kill(h.pid1, syscall.SIGKILL) // the kernel then kills all processes of its namespace
	}
	_ = h.boss.Process.Kill()
	_ = h.boss.Wait()
	for _, hierarchy := range []string{"systemd", "unified", "freezer", ""} {
		top := filepath.Join(cgroups, hierarchy, group)
		deadline := time.Now().Add(5 * time.Second)
		for time.Now().Before(deadline) {
			_ = exec.Command("find", top, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+").Run()
			if _, err := os.Stat(top); err != nil {
				break
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

// command prepares a shell script to run in the host.
func (h *host) command(ctx context.Context, script string) *exec.Cmd {
	p := strconv.Itoa(h.pid1)
	return exec.CommandContext(ctx, "nsenter", "-t", p, "-m", "-u", "-i", "-n", "-p", "-C", "-w",
		"--root=/proc/"+p+"/root",
		"env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TERM=dumb", "LANG=C.UTF-8",
		"DEBIAN_FRONTEND=noninteractive",
		"sh", "-c", script)
}

// try runs a script in the host and returns its output.
func (h *host) try(script string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	var out bytes.Buffer
	c := h.command(ctx, script)
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return strings.TrimRight(out.String(), "\n"), err
}

// run runs a script that must succeed, and returns its output.
func (h *host) run(script string) string {
	h.t.Helper()
	out, err := h.try(script)
	if err != nil {
		h.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

func (h *host) property(unit, name string) string {
	h.t.Helper()
	return h.run("systemctl show --value -p " + name + " " + unit)
}

// expect runs a script and fails the test if the output lacks one of the texts.
func (h *host) expect(script string, want ...string) string {
	h.t.Helper()
	out := h.run(script)
	for _, text := range want {
		if !strings.Contains(out, text) {
			h.t.Errorf("%s: no %q in\n%s", script, text, out)
		}
	}
	return out
}

// waitUntil waits for a condition, and shows the agent's log if it is not met in time.
func (h *host) waitUntil(bound time.Duration, what string, is func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(bound); !is(); <-time.After(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			log, _ := h.try("journalctl --no-pager -n 60; quorumctl status; systemctl --no-pager status quorumd etcd")
			h.t.Fatalf("not within %s: %s\n%s\nits processes:\n%s\nits console:\n%s", bound, what, log, h.processes(),
				read(h.t, h.console))
		}
	}
}

// processes lists the processes of the host from outside, so it works even if no command can run in the host.
func (h *host) processes() string {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", h.pid1))
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if own, err := os.Readlink(dir + "/ns/pid"); err == nil && own == space {
			stat, _ := os.ReadFile(dir + "/stat")
			command, _ := os.ReadFile(dir + "/cmdline")
			wait, _ := os.ReadFile(dir + "/wchan")
			fmt.Fprintf(&out, "%.60s … %s: %s\n", stat, wait, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return out.String()
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
