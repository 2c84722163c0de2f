// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package smart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd/rootfile"
)

const (
	program     = "/usr/sbin/smartctl"
	outputLimit = 1 << 20
	eachTakes   = 20 * time.Second
	allTake     = 5 * time.Minute
)

// asker runs smartctl for the drives of a machine.
type asker struct {
	program string
	sys     string
	dir     string // directory of the report and the locks
	each    time.Duration
	all     time.Duration
}

// Main asks all drives and publishes their answers. It writes to news the problems that it has not reported before.
func Main(files rootfile.Tree, news io.Writer) error {
	a := asker{program: program, sys: "/sys", dir: Dir, each: eachTakes, all: allTake}
	return a.publish(context.Background(), files, news)
}

func (a asker) publish(ctx context.Context, files rootfile.Tree, news io.Writer) error {
	path := filepath.Join(a.dir, File)
	var before answers
	if data, err := files.Read(path, fileLimit); err == nil {
		before, _ = parseAnswers(data) // an invalid file is replaced, and its problems are reported again
	}
	now := a.ask(ctx)
	for _, d := range now.Drives {
		if d.Absent != "" && !slices.ContainsFunc(before.Drives, func(was health.Drive) bool {
			return was.Name == d.Name && was.Absent == d.Absent
		}) {
			fmt.Fprintf(news, "%s is skipped: %s\n", d.Name, d.Absent)
		}
	}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if err := files.Write(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write the drive report: %w", err)
	}
	return nil
}

func (a asker) ask(ctx context.Context) answers {
	if _, err := os.Stat(a.program); err != nil {
		return answers{At: Monotonic(), Absent: "smartctl is not installed"}
	}
	ctx, cancel := context.WithTimeout(ctx, a.all)
	defer cancel()
	var all []health.Drive
	for _, name := range a.drives() {
		said, err := a.smartctl(ctx, name)
		if err != nil {
			all = append(all, health.Drive{Name: name, Absent: err.Error()})
			continue
		}
		all = append(all, parseDrive(name, said))
	}
	return answers{At: Monotonic(), Drives: all}
}

// drives lists the NVMe controllers, and the SCSI and SATA disks that are not removable; at most mostDrives.
func (a asker) drives() []string {
	var names []string
	controllers, _ := filepath.Glob(filepath.Join(a.sys, "class/nvme/nvme*"))
	for _, path := range controllers {
		names = append(names, filepath.Base(path))
	}
	disks, _ := filepath.Glob(filepath.Join(a.sys, "block/sd*"))
	for _, path := range disks {
		removable, err := os.ReadFile(filepath.Join(path, "removable"))
		if err == nil && strings.TrimSpace(string(removable)) == "0" {
			names = append(names, filepath.Base(path))
		}
	}
	return names[:min(len(names), mostDrives)]
}

var (
	errHangs   = errors.New("its smartctl hangs")
	errTooMuch = errors.New("the output of smartctl is too long")
	errNoTime  = errors.New("no time was left, because other drives took too long")
)

// smartctl runs smartctl on a drive and returns its output. The error contains no numbers that change. A process that
// hangs in the kernel cannot be killed: it is left running, and its lock prevents a second one for the same drive.
func (a asker) smartctl(ctx context.Context, name string) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, errNoTime
	}
	lock, err := os.OpenFile(filepath.Join(a.dir, "."+name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.New("cannot open its lock file")
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errHangs
	}
	ctx, cancel := context.WithTimeout(ctx, a.each)
	defer cancel()
	out := &bounded{}
	cmd := exec.CommandContext(ctx, a.program, "--json=c", "-i", "-H", "-A", "-n", "standby", "/dev/"+name)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin"}
	cmd.Stdout, cmd.ExtraFiles, cmd.WaitDelay = out, []*os.File{lock}, time.Second
	if err := cmd.Start(); err != nil {
		return nil, errors.New("cannot start smartctl")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(a.each + 2*time.Second): // the process hangs although it was killed
		return nil, errHangs
	}
	var status *exec.ExitError // the bits of the exit status repeat what the output contains
	switch {
	case out.over:
		return nil, errTooMuch
	case ctx.Err() != nil:
		return nil, errHangs
	case err != nil && !errors.As(err, &status):
		return nil, errors.New("smartctl exited abnormally")
	}
	return out.kept, nil
}

// bounded is a writer that keeps data up to a limit, and refuses the rest.
type bounded struct {
	kept []byte
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.kept)+len(p) > outputLimit {
		b.over = true
		return 0, errTooMuch
	}
	b.kept = append(b.kept, p...)
	return len(p), nil
}
