// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func hostConfig() config.Config {
	var c config.Config
	c.Host.Name = "n2"
	c.Etcd.DataDir = "/data"
	c.Etcd.ClientURL, c.Etcd.PeerURL = "http://c2", "http://p2"
	c.Etcd.ListenClientURL, c.Etcd.ListenPeerURL = "http://lc2", "http://lp2"
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
