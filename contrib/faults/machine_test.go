// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build vm

package faults

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

const (
	bootBound    = 5 * time.Minute  // 20 s on an idle machine
	commandBound = 12 * time.Minute // one fault waits until the machine has been up for ten minutes
	driveSize    = 512 << 20
	drives       = 3 // NVMe, nvme0 to nvme2
	legs         = 2 // of bond0: eth0 and eth1 inside, leg0 and leg1 for qemu
)

// bonded adds the interfaces to bond0, which the module creates, for etcd's peer traffic.
const bonded = "ip link set bond0 type bond mode active-backup miimon 100 && " +
	"for leg in eth0 eth1; do ip link set $leg master bond0 || exit; done && " +
	"ip addr add 10.98.0.1/24 dev bond0 && ip link set bond0 up"

// machine is a virtual machine with its own kernel and drives. It is emulated: its clock runs in real time, but its CPU
// is slow.
type machine struct {
	t       *testing.T
	port    net.Conn // sends a line of shell, and receives its output: see vm/init
	answers *bufio.Reader
	qmp     string
	dir     string // mounted inside as /share
	// flash is the file system with the file behind the first drive. The drive is as slow as this file system.
	flash *testbed.Mount
}

// boot starts a machine and stops it at the end of the test.
func boot(t *testing.T) *machine {
	t.Helper()
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := tempdir.New(t)
	m := &machine{
		t: t, qmp: filepath.Join(dir, "qmp"), dir: filepath.Join(t.TempDir(), "share"),
		flash: testbed.MountFaultfs(t, memory(t)),
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "port"))
	if err = errors.Join(err, os.Mkdir(m.dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, name := range []string{"quorumd", "quorumctl"} {
		if out, err := exec.Command("cp", program(t, name), m.dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	built := filepath.Join(root, ".cache", "vm")
	args := []string{
		"-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1536", "-display", "none",
		"-no-user-config", "-nodefaults", "-no-reboot", "-kernel", filepath.Join(built, "vmlinuz"),
		"-initrd", filepath.Join(built, "initrd"), "-append",
		"console=ttyS0 quiet panic=-1 psi=1 mitigations=off nowatchdog",
		"-serial", "file:" + filepath.Join(dir, "serial"), "-qmp", "unix:" + m.qmp + ",server=on,wait=off",
		"-device", "virtio-serial-pci", "-chardev", "socket,id=port,path=" + filepath.Join(dir, "port"),
		"-device", "virtserialport,chardev=port,name=faults", "-device", "virtio-rng-pci",
		"-virtfs", "local,path=" + m.dir + ",mount_tag=share,security_model=none",
	}
	fast := memory(t) // slow only if a fault makes it so
	for i := range drives {
		file := filepath.Join(fast, fmt.Sprintf("drive%d", i))
		if i == 0 {
			file = filepath.Join(m.flash.Dir, "drive0")
		}
		if err := errors.Join(os.WriteFile(file, nil, 0o644), os.Truncate(file, driveSize)); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-drive", fmt.Sprintf("if=none,id=d%d,file=%s,format=raw", i, file),
			"-device", fmt.Sprintf("nvme,id=nvme%d,serial=FAULT%d,drive=d%d", i, i, i))
	}
	for i := range legs {
		args = append(args, "-netdev", fmt.Sprintf("hubport,id=hub%d,hubid=%[1]d", i),
			"-device", fmt.Sprintf("virtio-net-pci,id=leg%d,netdev=hub%[1]d,romfile=", i))
	}
	qemu := exec.Command("qemu-system-x86_64", args...)
	qemu.Stderr = os.Stderr
	qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := qemu.Start(); err != nil {
		t.Fatalf("cannot start a virtual machine: %v; install qemu-system-x86", err)
	}
	t.Cleanup(func() {
		_ = qemu.Process.Kill()
		_ = qemu.Wait()
		if log, err := os.ReadFile(filepath.Join(dir, "serial")); t.Failed() && err == nil {
			t.Logf("the machine's console:\n%s", log)
		}
	})
	if err := listener.(*net.UnixListener).SetDeadline(time.Now().Add(bootBound)); err != nil {
		t.Fatal(err)
	}
	if m.port, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.port.Close() })
	m.answers = bufio.NewReader(m.port)
	began := time.Now()
	m.run("cp /share/quorumd /share/quorumctl /usr/bin/ && " + bonded)
	t.Logf("booted in %.0f s", time.Since(began).Seconds())
	return m
}

// try runs a line of shell in the machine.
func (m *machine) try(line string) (output string, code int) {
	m.t.Helper()
	err := m.port.SetDeadline(time.Now().Add(commandBound))
	if err == nil {
		_, err = fmt.Fprintln(m.port, strings.ReplaceAll(line, "\n", " "))
	}
	var end string
	if err == nil {
		output, err = m.answers.ReadString('\036')
	}
	if err == nil {
		end, err = m.answers.ReadString('\n')
	}
	if err == nil {
		code, err = strconv.Atoi(strings.TrimSpace(end))
	}
	if err != nil {
		m.t.Fatalf("%s: the machine does not answer: %v; %s", line, err, output)
	}
	return strings.TrimSuffix(output, "\036"), code
}

func (m *machine) run(line string) string {
	m.t.Helper()
	output, code := m.try(line)
	if code != 0 {
		m.t.Fatalf("%s: exit code %d: %s", line, code, output)
	}
	return output
}

// set changes a property of a device, as its firmware would.
func (m *machine) set(device, property string, value int) {
	m.t.Helper()
	m.sendQMP(fmt.Sprintf(
		`{"execute":"qom-set","arguments":{"path":"/machine/peripheral/%s","property":%q,"value":%d}}`,
		device, property, value))
}

// plug connects or disconnects the cable of an interface of the bond.
func (m *machine) plug(leg string, in bool) {
	m.t.Helper()
	m.sendQMP(fmt.Sprintf(`{"execute":"set_link","arguments":{"name":%q,"up":%t}}`, leg, in))
}

// sendQMP sends a QMP command to the machine's hardware.
func (m *machine) sendQMP(command string) {
	m.t.Helper()
	conn, err := net.Dial("unix", m.qmp)
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(commandBound)) // fails only on a closed connection, and then the read fails
	answers := bufio.NewScanner(conn)
	answers.Scan() // the greeting
	for _, ask := range []string{`{"execute":"qmp_capabilities"}`, command} {
		_, err := fmt.Fprintln(conn, ask)
		if err != nil || !answers.Scan() || strings.Contains(answers.Text(), `"error"`) {
			m.t.Fatalf("%s: %v: %s", ask, err, answers.Text())
		}
	}
}

// agent starts quorumd in the machine, with etcd's data in that directory, and waits until its health state is OK.
func (m *machine) agent(name, dir string) {
	m.t.Helper()
	config := fmt.Sprintf(`mode: observe
host: {name: n1, id: host-n1}
cluster: {name: demo, endpoints: ["http://127.0.0.1:2379"]}
etcd:
  {runner: process, binary: /usr/bin/true, dataDir: %[2]s/etcd, clientURL: "http://127.0.0.1:2379",
   peerURL: "http://10.98.0.1:2380", logFile: /run/%[1]s/etcd.log}
disk:
  {qualifySamples: 100, window: 100, minFree: 64MiB, starved: 100, directInterval: 500ms, fsyncClear: 100ms,
   fsyncWarm: 200ms, fsyncSlow: 1s, stall: 3s}
control: {socket: /run/%[1]s/s, group: root}
metrics: {listen: "127.0.0.1:9379"}
paths: {state: /run/%[1]s/state, runtime: /run/%[1]s/run}
`, name, dir)
	if err := os.WriteFile(filepath.Join(m.dir, name+".yaml"), []byte(config), 0o644); err != nil {
		m.t.Fatal(err)
	}
	m.run(fmt.Sprintf("mkdir -p /run/%[1]s && "+
		"{ setsid quorumd run --config /share/%[1]s.yaml >/share/%[1]s.log 2>&1 & echo $! >/run/%[1]s/pid; }", name))
	m.t.Cleanup(func() {
		if log, err := os.ReadFile(filepath.Join(m.dir, name+".log")); m.t.Failed() && err == nil {
			m.t.Logf("the agent's log of %s:\n%s", name, log)
		}
	})
	m.until(name, expectation{"OK", "", bootBound}, "", "")
}

// end stops the agent, if there is one.
func (m *machine) end(name string) { m.try(fmt.Sprintf("kill -9 $(cat /run/%s/pid)", name)) }

func (m *machine) showHealth(name string) (h control.Health) {
	m.t.Helper()
	output, code := m.try(fmt.Sprintf("quorumctl --socket /run/%s/s health -o json", name))
	if code == 0 {
		if err := json.Unmarshal([]byte(output), &h); err != nil {
			m.t.Fatalf("cannot read what quorumctl health shows: %v: %s", err, output)
		}
	}
	return h
}

// until waits for a health state and, if given, for a finding, its cause and its text.
func (m *machine) until(name string, wants expectation, cause, text string) control.Health {
	m.t.Helper()
	var last control.Health
	for end := time.Now().Add(wants.within); ; {
		last = m.showHealth(name)
		f, found := finding(last, wants.code)
		if last.State == wants.state && (found || wants.code == "") && (cause == "" || f.Cause == cause) &&
			strings.Contains(f.Text, text) {
			return last
		}
		if time.Now().After(end) {
			m.t.Fatalf("%s: not %+v, because of %q and with %q: %s: %s; %+v", name, wants, cause, text, last.State,
				last.Text, last.Findings)
		}
	}
}
