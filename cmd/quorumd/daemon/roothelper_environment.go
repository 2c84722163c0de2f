// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/systemd"
	"github.com/quorumd/quorumd/systemd/roothelper"
)

// setEnvironment writes etcd's environment from root's configuration. Only the initial cluster and its token come from
// the agent. The agent's group can read the file: it shows with which settings etcd runs.
func (s orderServer) setEnvironment(conf config.Config, i roothelper.Initial, group int) error {
	vars := conf.Environment(i.Cluster, i.Token)
	switch {
	case !i.Names(conf.SingleMember()):
		return fmt.Errorf("cannot write the environment: the initial cluster does not contain this host as %s",
			conf.SingleMember())
	case roothelper.Digest(vars) != i.Digest:
		return errors.New("cannot write the environment: the configuration has changed since quorumd read it → " +
			"systemctl reload quorumd")
	}
	return s.writeEnvironment(conf, vars, group)
}

func (s orderServer) writeEnvironment(conf config.Config, vars map[string]string, group int) error {
	for name := range vars {
		if !strings.HasPrefix(name, "ETCD_") {
			return fmt.Errorf("cannot write the environment: %s is not an environment variable of etcd", name)
		}
	}
	text, err := systemd.FormatEnvironment(vars)
	if err != nil {
		return fmt.Errorf("cannot write the environment: %w", err)
	}
	// no other user can read the file, because it may contain a password
	shared, err := s.files.WriteFor(conf.Etcd.EnvironmentFile, text, group)
	if err != nil {
		return fmt.Errorf("cannot write the environment: %w", err)
	}
	if !shared {
		slog.Warn("quorumd cannot read etcd's environment: it does not know the certificates and limits of etcd",
			"file", conf.Etcd.EnvironmentFile, "group", group)
	}
	return nil
}
