// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func TestProxyAvoidsThePortOfAnExternalEtcd(t *testing.T) {
	t.Parallel()
	external := strings.Replace(valid, "etcd:\n", "etcd:\n  runner: external\n", 1)
	for _, text := range []string{
		external,
		external + "proxy: {listen: 127.0.0.1:23790}\n",
		// the address is known
		external + "  listenClientURL: http://192.0.2.1:2379\nproxy: {listen: 127.0.0.1:2379}\n",
		valid + "proxy: {listen: 127.0.0.1:2379}\n",
	} {
		mustParse(t, text)
	}
}

func TestProxyOnFindsTheURLThatConflictsWithTheProxy(t *testing.T) {
	t.Parallel()
	c := mustParse(t, valid+"proxy: {listen: 127.0.0.1:2379}\n")
	for urls, want := range map[string]string{
		"": "",
		"http://192.0.2.1:2379,http://192.0.2.1:2380":  "",
		"http://192.0.2.1:2379,http://127.0.0.1:2379":  "http://127.0.0.1:2379",
		"http://localhost:2380,http://localhost:2379":  "http://localhost:2379",
		"https://0.0.0.0:2379":                         "https://0.0.0.0:2379",
		"https://[::]:2379":                            "https://[::]:2379",
		"unix://127.0.0.1:2381,http://127.0.0.1:2379a": "",
	} {
		if got := c.ProxyOn(strings.Split(urls, ",")); got != want {
			t.Errorf("%q: %q, want %q", urls, got, want)
		}
	}
	if got := mustParse(t, valid).ProxyOn([]string{"http://0.0.0.0:2379", ""}); got != "" {
		t.Errorf("without a proxy: %q", got)
	}
}
