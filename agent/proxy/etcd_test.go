// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestClientSpeaksTLSToEtcdThroughTheProxy checks that the client receives etcd's own certificate. The proxy has no
// key.
func TestClientSpeaksTLSToEtcdThroughTheProxy(t *testing.T) {
	t.Parallel()
	ca, err := testbed.NewCA(t.TempDir())
	must(t, err)
	certs, err := ca.Issue("etcd", testbed.CertOptions{})
	must(t, err)
	c := testbed.StartCluster(t, 1, testbed.ClusterOptions{TLS: &certs})
	address := Address([]string{c.Members[0].Options.ClientURL})
	f := run(t, func(o *Options) { o.Static = []string{address} })
	config, err := certs.ClientConfig()
	must(t, err)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + f.Addr().String()}, TLS: config, Logger: zap.NewNop(),
	})
	must(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	changes := client.Watch(clientv3.WithRequireLeader(ctx), "key")
	_, err = client.Put(ctx, "key", "value")
	must(t, err)
	if got := <-changes; len(got.Events) != 1 || string(got.Events[0].Kv.Value) != "value" {
		t.Errorf("the watch returns %+v", got)
	}
}
