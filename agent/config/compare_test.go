// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChangedNamesTheKeysThatDiffer(t *testing.T) {
	t.Parallel()
	const before = `
cluster: {name: c, endpoints: [https://127.0.0.1:2379], tls: {ca: /ca}}
etcd: {clientURL: https://127.0.0.1:2379, peerURL: https://127.0.0.1:2380, environment: {ETCD_CERT_FILE: /c}}
host: {name: h}
`
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing, written differently": {"mode: observe\n" + before + "timing: {interval: 2000ms}\n", nil},
		"a mode and a duration": {
			before + "timing: {lockTTL: 40s}\nmode: manage\n",
			[]string{"mode", "timing.lockTTL", "timing.orphanGrace"},
		},
		"within sections, lists and maps": {`
cluster: {name: c, endpoints: [https://127.0.0.1:2379, https://127.0.0.2:2379], tls: {ca: /other}}
etcd: {clientURL: https://127.0.0.1:2379, peerURL: https://127.0.0.1:2380, environment: {ETCD_CERT_FILE: /d}}
host: {name: h}
`, []string{"cluster.endpoints", "cluster.tls.ca", "etcd.environment"}},
		"a section that is gone": {`
cluster: {name: c, endpoints: [http://127.0.0.1:2379]}
etcd: {clientURL: http://127.0.0.1:2379, peerURL: https://127.0.0.1:2380, listenClientURL: https://127.0.0.1:2379,
  environment: {ETCD_CERT_FILE: /c}}
host: {name: h}
`, []string{"cluster.endpoints", "cluster.tls", "etcd.clientURL"}},
	} {
		a, err := Parse("before", []byte(before))
		if err != nil {
			t.Fatal(err)
		}
		b, err := Parse("after", []byte(c.text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, Changed(a, b)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
