// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// rotation is a CA rotation of a cluster under writes.
type rotation struct {
	*world
	dir     string // the directory of quorumctl pki
	peers   bool   // whether only the peer CA changes
	load    *testbed.WriteLoad
	refused int // connections with a refused certificate that the checks cause on purpose
}

// open returns the PKI directory in its current state.
func (r *rotation) open() *pki.Directory {
	r.t.Helper()
	a, err := pki.Open(r.dir, time.Now())
	must(r.t, err)
	return a
}

// checkPorts checks the ports whose CA changes, and returns how many certificates the client ports refused. Refusals by
// peer ports do not count: see complaints.
func (r *rotation) checkPorts() (refused int) {
	r.t.Helper()
	ports, err := r.open().CheckTrust(r.t.Context(), []string{address(r.hosts[0].Options.PeerURL)}, time.Now())
	must(r.t, err)
	for _, p := range ports {
		for _, answer := range []pki.Answer{p.Old, p.New} {
			if answer == pki.Refuses && p.For == "client" {
				refused++
			}
		}
	}
	want := 2 * len(r.hosts)
	if r.peers {
		want = len(r.hosts)
	}
	if len(ports) != want {
		r.t.Fatalf("%d ports were checked, want %d: %+v", len(ports), want, ports)
	}
	return refused
}

// stepAsOperator takes the next step as an operator does, on the machine with the CA.
func (r *rotation) stepAsOperator() commandResult {
	r.t.Helper()
	r.refused += 2 * r.checkPorts() // the command checks the same ports once more
	return me().runCtl(r.t, "pki", "rotate", "next", "--dir", r.dir, "--peers",
		address(r.hosts[0].Options.PeerURL), "-o", "json")
}

// expectRefused attempts a step whose precondition is not met.
func (r *rotation) expectRefused(says string) {
	r.t.Helper()
	if done := r.stepAsOperator(); done.code != 78 || !strings.Contains(done.output, says) {
		r.t.Fatalf("a step out of order: exit %d: %s, want %q", done.code, done.output, says)
	}
}

// next takes the next step, which must succeed.
func (r *rotation) next() (s pki.Rotation) {
	r.t.Helper()
	done := r.stepAsOperator()
	if err := json.Unmarshal([]byte(done.output), &s); err != nil || done.code != 0 {
		r.t.Fatalf("exit %d, %v: %s", done.code, err, done.output)
	}
	return s
}

// trust installs a CA bundle on hosts.
func (r *rotation) trust(file string, hosts ...*host) {
	r.t.Helper()
	for _, h := range hosts {
		if _, err := pki.Trust(file, filepath.Dir(h.files.CA), time.Now()); err != nil {
			r.t.Fatal(err)
		}
	}
}

// restart restarts every etcd, one after another, with a rollout.
func (r *rotation) restart(reason string) {
	r.t.Helper()
	before := map[*host]int{}
	for _, h := range r.hosts {
		before[h] = h.etcdPID()
	}
	r.eventually("all hosts report their members", func() bool { // a rollout skips hosts without a known member
		listed := r.hosts[0].statusNow().Hosts
		return len(listed) == len(r.hosts) &&
			!slices.ContainsFunc(listed, func(h control.HostRecord) bool { return h.MemberID == "" })
	})
	r.eventually("the rollout begins", func() bool {
		_, err := r.hosts[0].Client.StartRollout(r.t.Context(), control.RolloutRequest{
			Work: policy.WorkRestart, Reason: reason,
		})
		return err == nil
	})
	r.within(2*bound, "the rollout is done", func() bool {
		s, ok := r.hosts[0].status()
		return ok && s.Rollout != nil && s.Rollout.Reason == reason && s.Rollout.State == record.RolloutDone
	})
	for _, h := range r.hosts {
		if h.etcdPID() == before[h] {
			r.t.Errorf("etcd of %s was not restarted", h.Options.Name)
		}
	}
	r.checkEveryPair()
}

// checkEveryPair connects every host to the peer port and the client port of every host, with the certificate for that
// port and the CAs that the host trusts for it.
func (r *rotation) checkEveryPair() {
	r.t.Helper()
	for _, from := range r.hosts {
		in := func(name string) string { return filepath.Join(filepath.Dir(from.files.CA), name) }
		peers := in("peer-ca.crt")
		if _, err := os.Stat(peers); err != nil {
			peers = in("ca.crt")
		}
		asMember := peerClient(r.t, testbed.CertFiles{CA: peers, Cert: in("peer.crt"), Key: in("peer.key")})
		asClient := peerClient(r.t, from.files)
		for _, to := range r.hosts {
			for url, web := range map[string]*http.Client{
				to.Options.PeerURL: asMember, to.Options.ClientURL: asClient,
			} {
				answer, err := web.Get(url + "/version")
				if err != nil {
					r.t.Errorf("%s is refused by %s at %s: %v", from.Options.Name, to.Options.Name, url, err)
					continue
				}
				answer.Body.Close()
			}
		}
	}
}

// peerClient returns a client that presents a certificate as etcd does, whatever CA the server requests.
func peerClient(t *testing.T, files testbed.CertFiles) *http.Client {
	t.Helper()
	config, err := files.ClientConfig()
	must(t, err)
	pair := config.Certificates[0]
	config.Certificates = nil
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: callTimeout,
	}
}

// complaints returns the lines about certificates in the logs of all etcds, except those about clients that a peer port
// refused: whenever an agent checks a peer port, that port refuses the agent's client certificate. If one member
// refuses another, the refused member logs that itself.
func (r *rotation) complaints() (all []string) {
	r.t.Helper()
	for _, h := range r.hosts {
		text, err := os.ReadFile(filepath.Join(h.Options.Dir, "etcd.log"))
		must(r.t, err)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "rejected connection on peer endpoint") {
				continue
			}
			if slices.ContainsFunc([]string{"bad certificate", "unknown authority", "unknown certificate", "x509:"},
				func(part string) bool { return strings.Contains(line, part) }) {
				all = append(all, h.Options.Name+": "+line)
			}
		}
	}
	return all
}

// startCluster starts a cluster of that many voters with the certificates of the directory, and writes to it. The
// returned function installs a bundle on a host.
func (r *rotation) startCluster(voters int) (install func(host, bundle string)) {
	r.world, install = certified(r.t, r.open(), worldOptions{hosts: voters, voters: voters})
	r.start()
	r.bootstrap()
	r.verify(voters, 0)
	r.checkEveryPair()
	var endpoints []string
	for _, h := range r.hosts {
		endpoints = append(endpoints, h.Options.ClientURL)
	}
	client := r.hosts[0].files
	var err error
	r.load, err = testbed.StartWriteLoad(r.t.Context(), testbed.LoadOptions{
		Endpoints: endpoints, TLS: &client, Rate: 50, Retry: true, Timeout: time.Minute,
	})
	must(r.t, err)
	return install
}

// rotateCA rotates the CA of a cluster of that many voters.
func rotateCA(t *testing.T, voters int) {
	r := &rotation{world: &world{t: t}, dir: filepath.Join(t.TempDir(), "pki")}
	must(t, pki.Create(r.dir, time.Now()))
	install := r.startCluster(voters)
	settled := len(r.complaints())

	must(t, r.open().Begin(false, time.Now()))
	both := filepath.Join(r.dir, "trust-both.tar")
	r.expectRefused("does not trust the new CA")
	r.trust(both, r.hosts...)
	r.expectRefused("does not trust the new CA") // no etcd has loaded it
	r.restart("trust both CAs")
	s := r.next()
	if s.Step != 2 || len(s.Bundles) != voters {
		t.Fatalf("%+v", s)
	}

	r.expectRefused("presents a certificate signed by the old CA")
	for i, h := range r.hosts {
		if i == len(r.hosts)-1 {
			r.expectRefused(h.Options.Name +
				" at " + address(h.Options.ClientURL) + " presents a certificate signed by the old CA")
		}
		install(h.Options.Name, s.Bundles[i])
		r.checkEveryPair()
	}
	s = r.next()
	if s.Step != 3 {
		t.Fatalf("%+v", s)
	}
	r.expectRefused("still trusts the old CA")
	r.trust(s.Trust, r.hosts...)
	r.restart("trust the new CA alone")
	if s = r.next(); s.Step != 0 || len(s.CAs) != 2 {
		t.Fatalf("%+v", s)
	}
	r.checkEnded(settled, both, install)
}

// checkEnded checks a cluster after its rotation: the only refused connections are those that the checks have caused.
func (r *rotation) checkEnded(settled int, both string, install func(host, bundle string)) {
	r.t.Helper()
	report := r.load.Stop()
	r.t.Logf("%d writes, %d failed, %d retried, slowest %s", report.Acked, report.Failed, report.Retried,
		report.Slowest)
	if report.Failed > 0 || report.Acked == 0 {
		r.t.Errorf("%d writes failed, %d did not", report.Failed, report.Acked)
	}
	if _, err := os.Lstat(both); !errors.Is(err, os.ErrNotExist) {
		r.t.Errorf("%s is left: %v", both, err)
	}
	output := r.complaints()[settled:]
	if len(output) != r.refused {
		r.t.Errorf("%d connections were refused for a certificate, want %d:\n%s", len(output), r.refused,
			strings.Join(output, ""))
	}
	n1 := r.hosts[0]
	bundle, err := r.open().Renew(n1.Options.Name, nil, time.Now().Add(2*time.Second))
	must(r.t, err)
	install(n1.Options.Name, bundle)
	r.checkEveryPair()
	r.verify(len(r.hosts), 0)
}

func TestThreeVotersRotateTheCAUnderWrites(t *testing.T) {
	t.Parallel()
	rotateCA(t, 3)
}

// setPeerCA configures a different CA file for the peers of a host as the documentation describes: in the
// configuration, for later joins, and in the environment of its unit.
func (r *rotation) setPeerCA(h *host, peers string) {
	r.t.Helper()
	h.stop()
	h.configure(map[string]string{"etcd.tls": etcdTLS(filepath.Dir(h.files.CA), peers)})
	file := filepath.Join(h.Options.Dir, "state", "etcd.env")
	text, err := os.ReadFile(file)
	must(r.t, err)
	const name = "ETCD_PEER_TRUSTED_CA_FILE="
	lines := strings.Split(string(text), "\n")
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, name) })
	if i < 0 {
		r.t.Fatalf("%s does not name the CAs of the peers:\n%s", file, text)
	}
	lines[i] = name + strconv.Quote(peers)
	must(r.t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))
	r.start(h)
}

// If both ports of a cluster trust one CA, the agent's certificate opens the peer port, too. This cluster gets a
// separate CA for peers: the rotation is reverted half-way, repeated and completed, all under writes.
func TestThreeVotersWithOneCAGetAPeerCAUnderWrites(t *testing.T) {
	t.Parallel()
	r := &rotation{world: &world{t: t}, dir: filepath.Join(t.TempDir(), "pki"), peers: true}
	must(t, pki.Create(r.dir, time.Now()))
	for _, name := range []string{"peer-ca.crt", "peer-ca.key"} { // as if made before there was a peer CA
		must(t, os.Remove(filepath.Join(r.dir, name)))
	}
	install := r.startCluster(3)
	opens := func(h *host) bool {
		in := strings.TrimSuffix(h.files.Cert, ".crt")
		pair, err := tls.LoadX509KeyPair(in+".crt", in+".key")
		must(t, err)
		_, err = request(h.Options.PeerURL+"/members", pair)
		return err == nil
	}
	if !opens(r.hosts[0]) {
		t.Error("one CA for both ports refuses the agent's certificate, so this test proves nothing")
	}
	settled := len(r.complaints())
	must(t, r.open().Begin(true, time.Now()))
	both := filepath.Join(r.dir, "trust-both.tar")
	r.trust(both, r.hosts...)
	for _, h := range r.hosts {
		r.setPeerCA(h, filepath.Join(filepath.Dir(h.files.CA), "peer-ca.crt"))
	}
	r.expectRefused("does not trust the new CA")
	r.restart("trust both CAs")
	s := r.next()
	install(r.hosts[0].Options.Name, s.Bundles[0])
	r.checkEveryPair()

	s, err := r.open().Undo(time.Now().Add(2 * time.Second))
	if err != nil || s.Step != 2 || len(s.Bundles) != 3 {
		t.Fatalf("undone: %+v %v", s, err)
	}
	install(r.hosts[0].Options.Name, s.Bundles[0])
	r.checkEveryPair()
	if s, err = r.open().Undo(time.Now().Add(4 * time.Second)); err != nil || s.Step != 2 || len(s.Bundles) != 3 {
		t.Fatalf("forward again: %+v %v", s, err)
	}
	for i, h := range r.hosts {
		install(h.Options.Name, s.Bundles[i])
		r.checkEveryPair()
	}
	if s = r.next(); s.Step != 3 {
		t.Fatalf("%+v", s)
	}
	r.expectRefused("still trusts the old CA")
	r.trust(s.Trust, r.hosts...)
	r.restart("trust the new CA alone")
	if s = r.next(); s.Step != 0 || len(s.CAs) != 1 {
		t.Fatalf("%+v", s)
	}
	for _, h := range r.hosts {
		if opens(h) {
			t.Errorf("the peer port of %s accepts the agent's certificate", h.Options.Name)
		}
	}
	r.checkEnded(settled, both, install)
}
