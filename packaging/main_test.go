// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// TestMain also runs programs inside a host: a load on etcd that writes the same key again and again, with a timeout of
// one second per write; a client of etcd; and a client that sends arbitrary text to the root helper.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "load" {
		if err := load(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "order" {
		if err := order(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 4 && os.Args[1] == "etcd" {
		if err := useEtcd(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// useEtcd is the part of etcdctl that the tests need: put KEY VALUE, get KEY, and first PREFIX, which prints the first
// key with that prefix.
func useEtcd(endpoint string, args []string) error {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, Logger: zap.NewNop(), DialTimeout: 5 * time.Second,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if args[0] == "put" {
		_, err = client.Put(ctx, args[1], args[2])
		return err
	}
	var opts []clientv3.OpOption
	if args[0] == "first" {
		opts = append(opts, clientv3.WithPrefix())
	}
	found, err := client.Get(ctx, args[1], opts...)
	if err != nil {
		return err
	}
	for _, pair := range found.Kvs {
		if args[0] == "first" {
			fmt.Println(string(pair.Key))
			break
		}
		fmt.Println(string(pair.Value))
	}
	return nil
}

// order sends a text to the helper and prints the answer.
func order(text string) error {
	conn, err := net.DialTimeout("unixpacket", "/run/quorumd-helper.sock", 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(text)); err != nil {
		return err
	}
	answer := make([]byte, 64<<10)
	n, err := conn.Read(answer)
	fmt.Println(string(answer[:n]))
	return err
}

func load(endpoint string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close()
	var done, failed int
	for ctx.Err() == nil {
		put, cancel := context.WithTimeout(context.Background(), time.Second)
		if _, err := client.Put(put, "load", fmt.Sprint(done)); err != nil {
			failed++
			fmt.Println("failed write:", err)
		}
		cancel()
		done++
		<-time.After(10 * time.Millisecond)
	}
	fmt.Printf("%d writes, %d failed\n", done, failed)
	return nil
}

// cached returns a path below .cache/packaging, which `make test-packages` fills.
func cached(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../.cache/packaging", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; run this with make test-packages", err)
	}
	return path
}

// built returns the only package of that kind in a build, for example built(t, "first", "amd64.deb").
func built(t *testing.T, build, kind string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cached(t, build), "quorumd*"+kind))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d packages of kind %s in %s, %v; run this with make test-packages", len(found), kind, build, err)
	}
	return found[0]
}

// etcdPackage returns the path of Debian's package etcd-server.
func etcdPackage(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cached(t, "etcd"), "etcd-server_*.deb"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no etcd-server package: %v; run this with make test-packages", err)
	}
	return found[0]
}

// config returns the configuration of the tests: one host with loose limits for its disk, and short times.
func config(mode string) string {
	return strings.ReplaceAll(`mode: MODE
cluster:
  name: prod
  endpoints: [http://localhost:2379]
  voters: 1
  standbys: 0
  allowUnsafeVersion: true
etcd:
  clientURL: http://localhost:2379
  peerURL: http://localhost:2380
disk: {qualifySamples: 20, window: 20, fsyncWarm: 500ms, fsyncClear: 400ms, fsyncSlow: 2s, stall: 10s}
timing: {interval: 500ms}
`, "MODE", mode)
}
