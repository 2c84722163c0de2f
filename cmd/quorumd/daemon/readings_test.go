// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"testing"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/health/sensors"
)

func TestTheInterfaceOfEtcdIsTheOneItListensOn(t *testing.T) {
	t.Parallel()
	const peer = "https://n1.example.com:2380"
	for listen, want := range map[string]string{
		"https://192.0.2.1:2380":   "192.0.2.1",
		"https://[2001:db8::1]:23": "2001:db8::1",
		"https://0.0.0.0:2380":     "n1.example.com",
		"https://[::]:2380":        "n1.example.com",
		"":                         "n1.example.com",
	} {
		if got := peerHost(config.Etcd{PeerURL: peer, ListenPeerURL: listen}); got != want {
			t.Errorf("listening on %q: %q, want %q", listen, got, want)
		}
	}
}

func TestTheDatabaseIsCheckedSeparatelyIfItsLogHasItsOwnDirectory(t *testing.T) {
	t.Parallel()
	within := readings(config.Etcd{DataDir: "/data"}, sensors.New(), boots{})
	apart := readings(config.Etcd{DataDir: "/data", WALDir: "/wal"}, sensors.New(), boots{})
	if len(apart) != len(within)+1 {
		t.Errorf("%d readings with a directory for the log, %d without", len(apart), len(within))
	}
}
