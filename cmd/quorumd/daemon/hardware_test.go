// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"math"
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
	kernel, dir := sensors.New(), t.TempDir()
	if databaseApart(kernel, config.Etcd{DataDir: dir}) != nil {
		t.Error("the database is checked separately although the log is in the data directory")
	}
	look := databaseApart(kernel, config.Etcd{DataDir: dir, WALDir: "/wal"})
	if seen := look(math.MaxUint64); !seen.Apart || seen.Total == 0 {
		t.Errorf("%+v", seen)
	}
}
