//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const firstClusterPage = "first-cluster.md"

// bareFleet is a set of hosts on which an operator bootstraps a cluster with TLS as described in contrib/docs, and the
// operator's own machine.
type bareFleet struct {
	*fleet
	operatorDir  string   // working directory of the operator
	extraPerHost []string // the commands for each host in addition to those of the page, before quorumd starts
	extraOnFirst []string // commands for the first host, when its etcd runs
	// certName sets the name in the client certificate of a host's quorumd; nil keeps the name of the bundle.
	certName func(h *lab.Host) error
	login    string // precedes an etcdctl command whose certificate names no etcd user
	// shipped keeps quorumd's default waits. The speed of the disk is still ignored, because all hosts share one disk.
	shipped bool
}

// newBareFleet boots hosts without the distribution's etcd; quorumd's packages are ready to be installed.
func newBareFleet(t *testing.T, hosts int) *bareFleet {
	t.Helper()
	return newBareFleetOf(t, lab.Debian12, hosts)
}

// newBareFleetOf is like newBareFleet, with hosts of the given release.
func newBareFleetOf(t *testing.T, release lab.Release, hosts int) *bareFleet {
	t.Helper()
	cache, err := cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	root, err := release.Root(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	f := &bareFleet{fleet: &fleet{
		Lab: up(t, lab.Options{Hosts: hosts, Root: root}), t: t, etcds: map[*lab.Host]*clientv3.Client{},
		data: testbed.DataDirs{},
	}, operatorDir: filepath.Join(t.TempDir(), "you")}
	t.Cleanup(f.dump)
	f.check(os.Mkdir(f.operatorDir, 0o700))
	packages := []string{packageFile(t, "now")}
	etcd, err := filepath.Glob(filepath.Dir(packages[0]) + "/../etcd/quorumd-etcd_*_" + runtime.GOARCH + ".deb")
	if err != nil || len(etcd) != 1 {
		t.Fatalf("cannot find one package of etcd: %v %v; run make lab, which builds it", etcd, err)
	}
	packages = append(packages, etcd[0])
	f.check(f.Each(func(h *lab.Host) error {
		_, err := h.Shell(t.Context(), "dpkg --purge etcd-server etcd-client && rm -rf /var/lib/etcd/*")
		if err != nil {
			return err
		}
		for _, file := range packages {
			if err := h.Copy(file, "/root/"+filepath.Base(file)); err != nil {
				return err
			}
		}
		return nil
	}))
	return f
}

// bootstrapAsDocumented types the commands of the page, with more names if there are more than three hosts. It waits
// until all hosts are voters.
func (f *bareFleet) bootstrapAsDocumented() {
	f.t.Helper()
	commands := documentedCommands(f.t, firstClusterPage, "n1#")
	if len(commands) != 6 || !strings.HasPrefix(commands[4], "quorumctl bootstrap") {
		f.t.Fatalf("the page has %d commands for a host, where five and a look at the members are expected: %q",
			len(commands), commands)
	}
	more, own := "", documentedCommands(f.t, firstClusterPage, "you$")
	for _, h := range f.Hosts[3:] {
		own = append(own, fmt.Sprintf("quorumctl pki host %s %s", h.Name, h.Address))
		more += fmt.Sprintf(",%s=%s", h.Name, h.Address)
	}
	if more != "" {
		more += fmt.Sprintf(" --voters %d", len(f.Hosts))
	}
	for _, command := range own {
		f.runAsOperator(command)
	}
	if f.certName != nil {
		f.runAsOperator(fmt.Sprintf("mkdir -m 0700 %[1]s && tar -xf quorumd-pki/%[2]s.tar -C %[1]s", f.unbundled(),
			f.Hosts[0].Name))
	}
	f.check(f.Each(func(h *lab.Host) error {
		bundle := h.Name + ".tar"
		if err := f.copyToHost(h, filepath.Join("quorumd-pki", bundle)); err != nil {
			return err
		}
		for _, command := range commands[:4] {
			command = strings.NewReplacer("--name n1", "--name "+h.Name, "n1.tar", bundle,
				" --tls", more+" --tls").Replace(command)
			output, err := h.Shell(f.t.Context(), "cd /root && "+command)
			if err != nil {
				return err
			}
			if strings.HasPrefix(command, "quorumctl init") {
				f.t.Logf("%s# %s\n%s", h.Name, command, output)
				if err := f.loosenLimits(h); err != nil {
					return err
				}
				if f.certName != nil {
					if err := f.certName(h); err != nil {
						return err
					}
				}
				if _, err := h.Shell(f.t.Context(), script(f.extraPerHost)); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	f.within(f.limit(), "the bootstrap is accepted", func() bool {
		_, err := f.Hosts[0].Shell(f.t.Context(), commands[4])
		return err == nil
	})
	_, err := f.Hosts[0].Shell(f.t.Context(), script(f.extraOnFirst))
	f.check(err)
	f.connect()
	f.within(2*f.limit(), "all hosts are voters", func() bool { return f.has(len(f.Hosts), 0) })
	for _, h := range f.Hosts {
		f.shell(h, "quorumctl wait --for voter --timeout 2m")
	}
}

// unbundled returns the directory on the operator's machine with the content of the first host's bundle.
func (f *bareFleet) unbundled() string { return filepath.Join(f.operatorDir, "unbundled") }

// issueClientCert installs a client certificate for a host's quorumd that the operator's CA has issued to that name.
func (f *bareFleet) issueClientCert(h *lab.Host, name string) error {
	pki := filepath.Join(f.operatorDir, "quorumd-pki")
	authority, err := tls.LoadX509KeyPair(filepath.Join(pki, "ca.crt"), filepath.Join(pki, "ca.key"))
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	dir := filepath.Join(h.Root(), "etc/quorumd/tls")
	for file, block := range map[string]*pem.Block{ // both files exist, and keep owner and mode
		"client.crt": {Type: "CERTIFICATE", Bytes: der}, "client.key": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// copyToHost copies a file from the operator's machine to a host.
func (f *bareFleet) copyToHost(h *lab.Host, file string) error {
	return h.Copy(filepath.Join(f.operatorDir, file), "/root/"+filepath.Base(file))
}

// limit returns how long an action of quorumd may take.
func (f *bareFleet) limit() time.Duration {
	if f.shipped {
		return 5 * bound
	}
	return bound
}

// script joins commands so that the first failure ends them.
func script(lines []string) string {
	return "set -e; cd /root\n" + strings.Join(lines, "\n")
}

// tls returns the files with which a client connects to the cluster: those of quorumd on the first host or, if that
// certificate names no etcd user, those of the bundle.
func (f *bareFleet) tls() *testbed.CertFiles {
	dir := filepath.Join(f.Hosts[0].Root(), "etc/quorumd/tls")
	if f.certName != nil {
		dir = f.unbundled()
	}
	return &testbed.CertFiles{
		CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "client.crt"), Key: filepath.Join(dir, "client.key"),
	}
}

// url returns the TLS endpoint of a host's etcd.
func (f *bareFleet) url(h *lab.Host) string {
	return strings.Replace(h.ClientURL(), "http:", "https:", 1)
}

// connect creates a client of each etcd.
func (f *bareFleet) connect() {
	f.t.Helper()
	trusted, err := f.tls().ClientConfig()
	f.check(err)
	for _, h := range f.Hosts {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{f.url(h)}, TLS: trusted, Logger: zap.NewNop()})
		f.check(err)
		f.t.Cleanup(func() { _ = client.Close() }) // an error does not matter, because the host is gone
		f.etcds[h] = client
	}
}

// runAsOperator runs a command on the operator's machine, from which ssh reaches the hosts, and returns its output.
func (f *bareFleet) runAsOperator(command string) string {
	f.t.Helper()
	checkout, err := testbed.Root()
	f.check(err)
	ssh := "#!/bin/sh\nhost=$1; shift; line=\"$*\"\ncase $host in\n"
	for _, h := range f.Hosts {
		pid, err := h.PID()
		if err != nil {
			continue // the host is off
		}
		ssh += fmt.Sprintf("%s) exec nsenter %s sh -c \"$line\" ;;\n", h.Name, strings.Join(lab.EnterArgs(pid), " "))
	}
	ssh += "esac\necho \"ssh: no route to host $host\" >&2\nexit 255\n"
	bin := f.t.TempDir()
	f.check(os.WriteFile(filepath.Join(bin, "ssh"), []byte(ssh), 0o755))
	c := exec.CommandContext(f.t.Context(), "sh", "-ec", command)
	c.Dir = f.operatorDir
	c.Env = append(os.Environ(), "PATH="+bin+":"+filepath.Join(checkout, "bin")+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if err != nil {
		f.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}
