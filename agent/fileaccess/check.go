// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package fileaccess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/child"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Command is the hidden subcommand of a child that checks files as a different user. It must call ChildMain.
const Command = "look-at-config"

const (
	checkTimeout     = 10 * time.Second
	systemctlTimeout = 3 * time.Second
	configs          = "/etc/quorumd"
	maxAnswer        = 256 << 10 // maximum bytes of the answer of a child, which runs as a user that is not trusted

	// DefaultUser is the user that runs quorumd's service, unless its unit sets a different one.
	DefaultUser = "quorumd"
)

// ErrNoUser means that this host has no such user.
var ErrNoUser = errors.New("no such user")

// CurrentUser returns the name of the user of this process, or the numeric ID.
func CurrentUser() string {
	uid := uint32(os.Geteuid())
	accounts, err := readAccounts("/etc/passwd", "/etc/group")
	if err != nil {
		return fmt.Sprint(uid)
	}
	return accounts.nameOf(uid)
}

// ServiceUser returns the user that runs quorumd with a configuration: the user in its systemd unit, or DefaultUser if
// the unit is not loaded. It returns "" for a file that no unit reads: any file other than /etc/quorumd/*.yaml.
func ServiceUser(ctx context.Context, file string) string {
	path, err := filepath.Abs(file)
	if err != nil || filepath.Dir(path) != configs {
		return ""
	}
	name, ok := strings.CutSuffix(filepath.Base(path), ".yaml")
	if !ok || name == "" {
		return ""
	}
	return unitUser(ctx, AgentUnit(name), DefaultUser)
}

// AgentUnit returns the unit of the agent with that configuration name.
func AgentUnit(name string) string {
	if name == "quorumd" {
		return "quorumd.service"
	}
	return "quorumd@" + name + ".service"
}

// EtcdUser returns the user of an etcd unit, or "etcd" if the unit is not loaded.
func EtcdUser(ctx context.Context, unit string) string { return unitUser(ctx, unit, "etcd") }

// unitUser returns the user of a unit. If the unit is not loaded, it returns the parameter otherwise.
func unitUser(ctx context.Context, unit, otherwise string) string {
	ctx, cancel := context.WithTimeout(ctx, systemctlTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, "systemctl", "show", "--property=LoadState", "--property=User", "--", unit)
	c.WaitDelay = time.Second
	out, err := c.Output()
	if err != nil || !strings.Contains(string(out), "LoadState=loaded\n") {
		return otherwise
	}
	for line := range strings.Lines(string(out)) {
		if user, ok := strings.CutPrefix(strings.TrimSpace(line), "User="); ok && user != "" {
			return user
		}
	}
	return "root" // systemd's default
}

// CheckAs returns the problems of a configuration and its files for a user, for example files that the user cannot
// read. Only root can check as a different user. An error means that the check was not possible.
func CheckAs(ctx context.Context, file, user string) ([]config.Problem, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	return checkAs(ctx, user, nil, path)
}

// CheckEtcdAs returns the problems of the files of etcd.tls for etcd's user, for example files that the user cannot
// read. Like CheckAs, it requires root. It passes the configuration to the child, because etcd's user may be unable to
// read the configuration.
func CheckEtcdAs(ctx context.Context, c config.Config, user string) ([]config.Problem, error) {
	text, err := c.YAML()
	if err != nil {
		return nil, err
	}
	return checkAs(ctx, user, text)
}

// checkAs runs a child that checks as a user. The child reads text from its standard input.
func checkAs(ctx context.Context, user string, text []byte, args ...string) ([]config.Problem, error) {
	accounts, err := readAccounts("/etc/passwd", "/etc/group")
	if err != nil {
		return nil, err
	}
	who, groups, ok := accounts.user(user)
	if !ok {
		return nil, fmt.Errorf("cannot check access as %s: %w", user, ErrNoUser)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, "/proc/self/exe", append([]string{Command}, args...)...)
	c.Dir, c.Stdin = "/", bytes.NewReader(text)
	c.Env = []string{} // nothing from root's environment
	c.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true, // that user could trace the child, which must not have access to root's terminal
		Credential: &syscall.Credential{Uid: who.id, Gid: who.primary, Groups: groups}, Pdeathsig: syscall.SIGKILL,
	}
	problems, err := run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("cannot check access as %s: %w", user, err)
	}
	return problems, nil
}

// Hidden returns warnings about files in directories that systemd hides from the service.
func Hidden(c config.Config) []string {
	files := []struct{ key, path string }{{"metrics.webConfig", c.Metrics.WebConfig}}
	if path := c.Etcd.PasswordFile; path != "" {
		files = append(files, struct{ key, path string }{"etcd.passwordFile", path})
	}
	if t := c.Cluster.TLS; t != nil {
		files = append(files, []struct{ key, path string }{
			{"cluster.tls.ca", t.CA},
			{"cluster.tls.cert", t.Cert},
			{"cluster.tls.key", t.Key},
		}...)
	}
	var messages []string
	for _, f := range files {
		for _, place := range []string{"/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"} {
			if strings.HasPrefix(f.path, place) {
				messages = append(messages,
					fmt.Sprintf("%s: %s is in %s, which is hidden from the service (ProtectHome=, PrivateTmp=): "+
						"move it to %s",
						f.key, f.path, strings.TrimSuffix(place, "/"), configs))
			}
		}
	}
	return messages
}

// run returns the result of a child. When the context ends, it stops waiting for a child that hangs on a file.
func run(ctx context.Context, c *exec.Cmd) ([]config.Problem, error) {
	var problems []config.Problem
	ended := make(chan error, 1)
	go func() { ended <- child.Run(c, maxAnswer, nil, &problems) }()
	select {
	case err := <-ended:
		return problems, err
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer within %v: access to a file hangs", durationfmt.Text(checkTimeout))
	}
}

// ChildMain runs in the child, and reports what is wrong with a configuration and its files as seen by the user
// that the child runs as. It checks the files of the configuration that args names. Without args, it reads a
// configuration from stdin and checks the files of etcd.tls.
func ChildMain(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) > 1 {
		return errors.New("one file is expected, or none")
	}
	return child.Main(context.Background(), stdout, func(context.Context, *child.Progress) ([]config.Problem, error) {
		if len(args) == 0 {
			return checkEtcdFiles(stdin), nil
		}
		return check(args[0]), nil
	})
}

func checkEtcdFiles(stdin io.Reader) []config.Problem {
	text, err := io.ReadAll(io.LimitReader(stdin, config.MaxFileSize+1))
	if err != nil {
		return problemsOf(err)
	}
	c, err := config.Parse("", text)
	if err != nil {
		return problemsOf(err)
	}
	return problemsOf(c.CheckEtcdFiles())
}

func check(file string) []config.Problem {
	c, err := config.Load(file)
	if err != nil {
		return problemsOf(err)
	}
	problems := problemsOf(c.CheckFiles())
	if why := cannotWrite(c.Paths.State); why != "" {
		problems = append(problems, config.Problem{Key: "paths.state", Message: why})
	}
	if why := cannotWrite(c.Paths.Runtime); why != "" {
		problems = append(problems, config.Problem{Key: "paths.runtime", Message: why})
	}
	return problems
}

func problemsOf(err error) []config.Problem {
	if err == nil {
		return []config.Problem{}
	}
	if problems, ok := errors.AsType[config.Errors](err); ok {
		return problems
	}
	return []config.Problem{{Message: err.Error()}}
}

// cannotWrite returns why this process cannot create files in a directory, or "". A missing directory is not a problem,
// because systemd creates it when the service starts.
func cannotWrite(dir string) string {
	err := unix.Access(dir, unix.W_OK|unix.X_OK)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return ""
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("%s is not writable: permission denied; chown it to the user that runs quorumd", dir)
	}
	return fmt.Sprintf("cannot write to %s: %v; correct the path", dir, err)
}
