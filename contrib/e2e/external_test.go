// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/docs"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// kubelet runs etcd as the static pod of a host while the manifest is in place, with the flags, paths and certificates
// of kubeadm, in a separate directory.
type kubelet struct {
	h        *host
	etcd     *testbed.Member
	manifest string
}

// run starts and stops etcd according to the manifest, until the context ends.
func (k *kubelet) run(ctx context.Context) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := os.Stat(k.manifest)
		runs := true
		select {
		case <-k.etcd.Done():
			runs = false
		default:
		}
		switch {
		case runs && errors.Is(err, fs.ErrNotExist):
			_ = k.etcd.Terminate() // the next round tries again
		case !runs && err == nil:
			_ = k.etcd.Restart(ctx) // the next round tries again
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// moveManifestAway and restoreManifest run the commands of kubernetes.md.
func (k *kubelet) moveManifestAway() {
	k.runDocumented("mv /etc/kubernetes/manifests/etcd.yaml /root/")
}

func (k *kubelet) restoreManifest() { k.runDocumented("mv /root/etcd.yaml /etc/kubernetes/manifests/") }

// runDocumented runs a command that the Kubernetes page shows, below the host's own root.
func (k *kubelet) runDocumented(command string) {
	t := k.h.w.t
	t.Helper()
	if !slices.Contains(docs.Shell(kubernetesPage(t)), command) {
		t.Fatalf("kubernetes.md does not show %s", command)
	}
	if out, err := exec.Command("sh", "-c", k.inRoot(command)).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
}

// inRoot makes a command use files below the host's own root directory.
func (k *kubelet) inRoot(command string) string {
	root := strings.TrimSuffix(k.manifest, "/etc/kubernetes/manifests/etcd.yaml")
	return strings.ReplaceAll(command, " /", " "+root+"/")
}

// program returns the program with that name from kubernetes.md.
func (k *kubelet) program(name string) []byte {
	t := k.h.w.t
	t.Helper()
	shown := regexp.MustCompile(`(?m)^    # cat /etc/quorumd/hooks/etcd\.d/` + name + `\n    (#!/bin/sh)\n    (.*)$`)
	found := shown.FindStringSubmatch(kubernetesPage(t))
	if found == nil {
		t.Fatalf("kubernetes.md shows no program %s", name)
	}
	return []byte(found[1] + "\n" + k.inRoot(found[2]) + "\n")
}

func kubernetesPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (k *kubelet) etcdRuns() bool {
	select {
	case <-k.etcd.Done():
		return false
	default:
		return true
	}
}

// stackedWorld makes three kubeadm control planes, each with an agent and an etcd that the kubelet runs.
func stackedWorld(t *testing.T) (*world, []*kubelet) {
	t.Helper()
	a := newAuthority(t)
	root := func(o *testbed.HostOptions) string { return o.Dir + ".root" }
	ip := func(i int) string { return fmt.Sprintf("127.0.0.%d", 10+i) }
	at := func(i int, url string) string { return strings.Replace(https(url), "127.0.0.1", ip(i), 1) }
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, each: func(i int, h *testbed.HostOptions) {
		for n, url := range h.Endpoints {
			if h.Endpoints[n] = https(url); i == 1 { // all hosts share this slice, so only the first sets the addresses
				h.Endpoints[n] = at(n+1, url)
			}
		}
		h.ClientURL, h.PeerURL = at(i, h.ClientURL), at(i, h.PeerURL)
		h.ListenClientURL, h.ListenPeerURL = "", ""
		pki := filepath.Join(root(h), "etc/kubernetes/pki/etcd")
		agent := a.issue("quorumd-" + h.Name)
		h.Set["cluster.tls"] = fmt.Sprintf("{ca: %s, cert: %s, key: %s}", agent.CA, agent.Cert, agent.Key)
		h.Set["etcd.runner"], h.Set["etcd.binary"] = "external", filepath.Join(root(h), "usr/bin/etcd")
		h.Set["etcd.dataDir"] = filepath.Join(root(h), "var/lib/etcd")
		h.Set["etcd.metricsURL"] = "http://" + h.Metrics[:strings.LastIndex(h.Metrics, ":")] + ":" + freePort(t)
		h.Set["etcd.environment"] = fmt.Sprintf("{ETCD_CERT_FILE: %[1]s/server.crt, ETCD_KEY_FILE: %[1]s/server.key, "+
			"ETCD_PEER_CERT_FILE: %[1]s/peer.crt, ETCD_PEER_KEY_FILE: %[1]s/peer.key}", pki)
	}})
	var initial []string
	for _, h := range w.hosts {
		initial = append(initial, h.Options.Name+"="+h.Options.PeerURL)
	}
	ctx, stop := context.WithCancel(context.Background())
	var kubelets []*kubelet
	for i, h := range w.hosts {
		k := &kubelet{h: h, manifest: filepath.Join(root(&h.Options), "etc/kubernetes/manifests/etcd.yaml")}
		k.startPod(ctx, a, ip(i+1), strings.Join(initial, ","))
		kubelets = append(kubelets, k)
	}
	done := make(chan struct{})
	for _, k := range kubelets {
		go func() { k.run(ctx); done <- struct{}{} }()
	}
	t.Cleanup(func() {
		stop()
		for _, k := range kubelets {
			<-done
			<-k.etcd.Done()
		}
	})
	return w, kubelets
}

func freePort(t *testing.T) string { return fmt.Sprint(testbed.FreePorts(t, 1)[0]) }

// startPod writes the certificates and the manifest where kubeadm does, and starts the pod.
func (k *kubelet) startPod(ctx context.Context, a authority, ip, initial string) {
	t, o := k.h.w.t, k.h.Options
	t.Helper()
	root := o.Dir + ".root"
	pki, data := filepath.Join(root, "etc/kubernetes/pki/etcd"), filepath.Join(root, "var/lib/etcd")
	err := errors.Join(os.MkdirAll(pki, 0o755), os.MkdirAll(filepath.Dir(data), 0o755), os.Mkdir(data, 0o700),
		os.MkdirAll(filepath.Dir(k.manifest), 0o755), os.Mkdir(filepath.Join(root, "root"), 0o700),
		os.WriteFile(k.manifest, []byte("kind: Pod\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server", "peer", "healthcheck-client"} {
		files, err := a.Issue(o.Name+"-"+name, testbed.CertOptions{
			IPs: []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(ip)},
		})
		if err != nil {
			t.Fatal(err)
		}
		in := func(end string) string { return filepath.Join(pki, name+end) }
		put(t, testbed.CertFiles{CA: filepath.Join(pki, "ca.crt"), Cert: in(".crt"), Key: in(".key")}, files)
	}
	port := o.ClientURL[strings.LastIndex(o.ClientURL, ":"):]
	k.etcd, err = testbed.StartMember(ctx, testbed.MemberOptions{
		Binary: k.h.real, Name: o.Name, Dir: root, DataDir: data, ClientURL: o.ClientURL, PeerURL: o.PeerURL,
		ListenClientURL: "https://127.0.0.1" + port + "," + o.ClientURL, InitialCluster: initial,
		Extra: []string{
			"--cert-file=" + pki + "/server.crt", "--key-file=" + pki + "/server.key",
			"--trusted-ca-file=" + pki + "/ca.crt", "--client-cert-auth=true",
			"--peer-cert-file=" + pki + "/peer.crt", "--peer-key-file=" + pki + "/peer.key",
			"--peer-trusted-ca-file=" + pki + "/ca.crt", "--peer-client-cert-auth=true",
			"--listen-metrics-urls=" + o.Set["etcd.metricsURL"], "--snapshot-count=10000",
			"--experimental-initial-corrupt-check=true", "--experimental-watch-progress-notify-interval=5s",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	health := testbed.CertFiles{
		CA: pki + "/ca.crt", Cert: pki + "/healthcheck-client.crt", Key: pki + "/healthcheck-client.key",
	}
	config, err := health.ClientConfig()
	if err == nil {
		k.h.etcd, err = clientv3.New(clientv3.Config{
			Endpoints: []string{o.ClientURL}, TLS: config, Logger: zap.NewNop(),
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	client := k.h.etcd
	t.Cleanup(func() { _ = client.Close() }) // etcd may have exited
}

// leads reports whether the host's etcd is the leader.
func (h *host) leads() bool {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	s, err := h.etcd.Status(ctx, h.Options.ClientURL)
	return err == nil && s.Leader == s.Header.MemberId
}

func TestKubeadmControlPlanesAreAdoptedAndGoDownOneAtATime(t *testing.T) {
	t.Parallel()
	w, kubelets := stackedWorld(t)
	w.start()
	w.within(formation, "every agent has adopted its voter", func() bool {
		for _, h := range w.hosts {
			if h.role() != policy.RoleVoter || !h.waitsFor(policy.Idle) || !h.hasReason(policy.EtcdExternal) {
				return false
			}
		}
		return true
	})
	leader := 0
	w.eventually("one leads", func() bool {
		for i, h := range w.hosts {
			if h.leads() {
				leader = i
				return true
			}
		}
		return false
	})
	k, h, other := kubelets[leader], w.hosts[leader], w.hosts[(leader+1)%3]

	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	_, err := h.Client.RequestMaintenance(ctx, control.MaintenanceRequest{Work: policy.WorkRestart, Reason: "a test"})
	if err == nil || !strings.Contains(err.Error(), "this host's etcd is managed externally") {
		t.Fatalf("a restart that quorumd cannot carry out here was accepted: %v", err)
	}

	h.requestWork(policy.WorkMaintenance)
	w.eventually("the host is safe to touch, and a different member leads", func() bool {
		return h.maintenance() == policy.RequestSafe && !h.leads()
	})
	if s, _ := h.status(); !k.etcdRuns() || !strings.Contains(s.Reasons[0].Text, "may be stopped now") {
		t.Fatalf("etcd runs: %t; %v", k.etcdRuns(), s.Reasons)
	}
	other.requestWork(policy.WorkMaintenance)
	k.moveManifestAway()
	w.eventually("the agent reports that etcd is down", func() bool {
		s, ok := h.status()
		return ok && s.Unit.State == "inactive" && h.waitsFor(policy.InMaintenance)
	})
	w.eventually("etcd has ended, and the next operation waits", func() bool { // etcd closes its ports before it ends
		return !k.etcdRuns() && other.maintenance() == policy.RequestWaiting
	})
	w.never(quiet, "the next operation begins", func() bool {
		return other.maintenance() != policy.RequestWaiting || k.etcdRuns()
	})
	h.endMaintenance()
	w.eventually("the agent reports that others have to start etcd", func() bool {
		return h.waitsFor(policy.EtcdExternal)
	})
	if k.etcdRuns() {
		t.Fatal("etcd was started, although its manifest is aside")
	}
	k.restoreManifest()
	w.eventually("the host is back", func() bool { return h.endedWith(policy.Cycled) })
	w.eventually("the next operation begins", func() bool { return other.maintenance() == policy.RequestSafe })
	other.endMaintenance()
	w.eventually("the next operation ends although its etcd was never stopped", func() bool {
		return other.endedWith(policy.Cycled)
	})
	// A connection that is aborted during its handshake leaves a line in etcd's log. The dozens of port checks by the
	// agents must not do that; a few lines may have other causes, such as a timeout on a busy machine.
	log, err := os.ReadFile(k.etcd.LogPath())
	if n := strings.Count(string(log), "rejected connection"); err != nil || n > 10 {
		t.Errorf("etcd's log has %d failed connections: %v", n, err)
	}
}

func TestOperatorProgramsStopAndStartAnEtcdRunByTheKubelet(t *testing.T) {
	t.Parallel()
	w, kubelets := stackedWorld(t)
	h, k := w.hosts[1], kubelets[1]
	dir := filepath.Join(h.Options.Dir, "hooks", "etcd.d")
	h.Options.Set["maintenance.hooks"] = filepath.Dir(dir)
	h.Options.Set["etcd.binary"] = h.real
	err := errors.Join(os.MkdirAll(dir, 0o755), h.WriteConfig(),
		os.WriteFile(filepath.Join(dir, "stop"), k.program("stop"), 0o755),
		os.WriteFile(filepath.Join(dir, "start"), k.program("start"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	w.start()
	w.within(formation, "the agent is idle, and can run etcd", func() bool {
		return h.role() == policy.RoleVoter && h.waitsFor(policy.Idle) && !h.hasReason(policy.EtcdExternal)
	})
	h.requestWork(policy.WorkMaintenance)
	w.eventually("the host is safe to touch, and its etcd is down", func() bool {
		return h.maintenance() == policy.RequestSafe && !k.etcdRuns()
	})
	h.endMaintenance()
	w.eventually("the host is back", func() bool { return k.etcdRuns() && h.endedWith(policy.Cycled) })
	h.requestWork(policy.WorkRestart)
	w.eventually("a restart runs both programs", func() bool { return k.etcdRuns() && h.endedWith(policy.Cycled) })
}
