// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestAHostWithoutEndpointsFindsTheClusterByDiscoveryAndNeverBootstraps(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "endpoints")
	w := newWorld(t, worldOptions{hosts: 2, voters: 1, standbys: 1, each: func(number int, o *testbed.HostOptions) {
		if number == 2 {
			o.Endpoints = []string{o.ClientURL}
			o.Set["cluster.discovery"] = fmt.Sprintf("{file: %s, interval: 1s, timeout: 1s}", file)
		}
	}})
	n1, n2 := w.hosts[0], w.hosts[1]
	w.start()
	w.bootstrap()
	refused := func(says string) {
		t.Helper()
		w.eventually("n2 refuses to bootstrap a separate cluster: "+says, func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
			defer cancel()
			_, err := n2.Client.Bootstrap(ctx, clusterName)
			e, is := errors.AsType[*control.Error](err)
			if err == nil {
				t.Fatal("n2 accepted the request to bootstrap a separate cluster")
			}
			return is && strings.Contains(e.Message, says)
		})
	}
	refused("endpoints of an existing cluster may be missing: the endpoints have not been discovered: open " + file)
	for text, says := range map[string]string{
		"": "the answer is empty", "<html>\n": "the answer is refused",
		n1.Options.ClientURL + "\nhttps://n3:2379\n": "does not use http,",
	} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		refused(says)
	}
	must(t, os.WriteFile(file, []byte("# the cluster\n"+n1.Options.ClientURL+"\n"), 0o600))
	w.eventually("n2 is a standby", func() bool { return w.has(1, 1) })
	must(t, os.WriteFile(file, nil, 0o600))
	w.eventually("n2 reports that the file is empty", func() bool {
		return n2.logHas("discovered endpoints") && n2.logHas("the answer is empty")
	})
	w.verify(1, 1)
}
