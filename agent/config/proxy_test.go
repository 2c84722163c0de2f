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
		// the address of etcd is known
		external + "  listenClientURL: http://192.0.2.1:2379\nproxy: {listen: 127.0.0.1:2379}\n",
		valid + "proxy: {listen: 127.0.0.1:2379}\n",
		learner + "proxy: {learnerListen: 127.0.0.1:2379}\n",
		learner + "proxy: {listen: 127.0.0.1:2379, learnerListen: 127.0.0.1:2381}\n",
	} {
		mustParse(t, text)
	}
}

// learner is a configuration of a host with a permanent learner.
const learner = valid + "host: {role: learner}\n"

func TestOnlyALearnersHostHasAPortForItsLearner(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		valid + "proxy: {learnerListen: 127.0.0.1:2381}\n": "proxy.learnerListen (127.0.0.1:2381) is the port of a " +
			"permanent learner, but host.role is member; remove the port, or set host.role: learner",
		learner + "proxy: {learnerListen: 192.0.2.1:2381}\n": "must be a loopback address",
		learner + "proxy: {listen: 127.0.0.1:2381, learnerListen: 127.0.0.1:2381}\n": "proxy.listen (127.0.0.1:2381) " +
			"and proxy.learnerListen (127.0.0.1:2381) listen on the same address and port",
		strings.Replace(learner, "etcd:\n", "etcd:\n  runner: external\n", 1) +
			"proxy: {learnerListen: 127.0.0.1:2379}\n": "so proxy.learnerListen (127.0.0.1:2379) must use a " +
			"different " +
			"port",
	} {
		if _, err := Parse("quorumd.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
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
		key, listen, got := c.ProxyOn(strings.Split(urls, ","))
		if got != want || want != "" && (key != "proxy.listen" || listen != "127.0.0.1:2379") {
			t.Errorf("%q: %q, %q, %q, want %q", urls, key, listen, got, want)
		}
	}
	if _, _, got := mustParse(t, valid).ProxyOn([]string{"http://0.0.0.0:2379", ""}); got != "" {
		t.Errorf("without a proxy: %q", got)
	}
	c = mustParse(t, learner+"proxy: {learnerListen: 127.0.0.1:2381}\n")
	if key, _, got := c.ProxyOn([]string{"http://0.0.0.0:2381"}); key != "proxy.learnerListen" || got == "" {
		t.Errorf("the learner's port: %q, %q", key, got)
	}
}
