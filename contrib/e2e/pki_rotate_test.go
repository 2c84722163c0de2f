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
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// rotation is a cluster that changes to another authority under writes.
type rotation struct {
	*world
	dir     string // of the authority
	load    *testbed.WriteLoad
	refused int // connections with a certificate that a look made in order to see them refused
}

// open gives the authority as it is now.
func (r *rotation) open() *pki.Authority {
	r.t.Helper()
	a, err := pki.Open(r.dir, time.Now())
	must(r.t, err)
	return a
}

// look looks at every member, by way of the first, and counts who refused a certificate.
func (r *rotation) look() (refused int) {
	r.t.Helper()
	ports, err := r.open().Look(r.t.Context(), []string{address(r.hosts[0].Options.PeerURL)}, time.Now())
	must(r.t, err)
	for _, p := range ports {
		for _, answer := range []pki.Answer{p.Old, p.New} {
			if answer == pki.Refuses {
				refused++
			}
		}
	}
	if want := 2 * len(r.hosts); len(ports) != want {
		r.t.Fatalf("%d ports were looked at, want %d: %+v", len(ports), want, ports)
	}
	return refused
}

// types has a person on the authority's machine take the next step.
func (r *rotation) types() ended {
	r.t.Helper()
	r.refused += 2 * r.look() // the command sees the same ports once more
	return me().runsCtl(r.t, "pki", "rotate", "next", "--dir", r.dir, "--peers",
		address(r.hosts[0].Options.PeerURL), "-o", "json")
}

// early tries to take a step for which something is missing.
func (r *rotation) early(says string) {
	r.t.Helper()
	if done := r.types(); done.code != 78 || !strings.Contains(done.said, says) {
		r.t.Fatalf("a step out of order: exit %d: %s, want %q", done.code, done.said, says)
	}
}

// next takes a step.
func (r *rotation) next() (s pki.Rotation) {
	r.t.Helper()
	done := r.types()
	if err := json.Unmarshal([]byte(done.said), &s); err != nil || done.code != 0 {
		r.t.Fatalf("exit %d, %v: %s", done.code, err, done.said)
	}
	return s
}

// trust puts a file of authorities on hosts.
func (r *rotation) trust(file string, hosts ...*host) {
	r.t.Helper()
	for _, h := range hosts {
		if _, err := pki.Trust(file, filepath.Dir(h.files.CA), time.Now()); err != nil {
			r.t.Fatal(err)
		}
	}
}

// restart has every etcd restarted, one after another, by a rollout.
func (r *rotation) restart(reason string) {
	r.t.Helper()
	before := map[*host]int{}
	for _, h := range r.hosts {
		before[h] = h.etcdPID()
	}
	r.eventually("the rollout begins", func() bool {
		_, err := r.hosts[0].Client.StartRollout(r.t.Context(), control.RolloutRequest{
			Work: control.WorkRestart, Reason: reason,
		})
		return err == nil
	})
	r.within(2*bound, "the rollout is done", func() bool {
		s, ok := r.hosts[0].status()
		return ok && s.Rollout != nil && s.Rollout.Reason == reason && s.Rollout.State == control.RolloutDone
	})
	for _, h := range r.hosts {
		if h.etcdPID() == before[h] {
			r.t.Errorf("etcd of %s was not restarted", h.Options.Name)
		}
	}
	r.everyPair()
}

// everyPair has every host dial the peer port and the client port of every host, with its own certificate and whom it
// trusts.
func (r *rotation) everyPair() {
	r.t.Helper()
	for _, from := range r.hosts {
		dir := filepath.Dir(from.files.CA)
		own := testbed.CertFiles{
			CA: from.files.CA, Cert: filepath.Join(dir, "peer.crt"), Key: filepath.Join(dir, "peer.key"),
		}
		config, err := own.ClientConfig()
		must(r.t, err)
		pair := config.Certificates[0]
		config.Certificates, config.GetClientCertificate = nil, func(*tls.CertificateRequestInfo) (*tls.Certificate,
			error,
		) {
			return &pair, nil // as etcd does: of whichever authority it is
		}
		web := &http.Client{
			Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: callTimeout,
		}
		for _, to := range r.hosts {
			for _, url := range []string{to.Options.PeerURL, to.Options.ClientURL} {
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

// complaints gives the lines of all etcds that speak of a certificate.
func (r *rotation) complaints() (all []string) {
	r.t.Helper()
	for _, h := range r.hosts {
		text, err := os.ReadFile(filepath.Join(h.Options.Dir, "etcd.log"))
		must(r.t, err)
		for line := range strings.Lines(string(text)) {
			if slices.ContainsFunc([]string{"bad certificate", "unknown authority", "unknown certificate", "x509:"},
				func(part string) bool { return strings.Contains(line, part) }) {
				all = append(all, h.Options.Name+": "+line)
			}
		}
	}
	return all
}

// rotates changes a cluster of that many voters to another authority.
func rotates(t *testing.T, voters int) {
	r := &rotation{dir: filepath.Join(t.TempDir(), "pki")}
	must(t, pki.Create(r.dir, time.Now()))
	authority, err := pki.Open(r.dir, time.Now())
	must(t, err)
	var install func(host, bundle string)
	r.world, install = certified(t, authority, worldOptions{hosts: voters, voters: voters})
	r.start()
	r.bootstrap()
	r.verify(voters, 0)
	r.everyPair()
	var endpoints []string
	for _, h := range r.hosts {
		endpoints = append(endpoints, h.Options.ClientURL)
	}
	client := r.hosts[0].files
	r.load, err = testbed.StartWriteLoad(t.Context(), testbed.LoadOptions{
		Endpoints: endpoints, TLS: &client, Rate: 50, Retry: true, Timeout: 10 * time.Second,
	})
	must(t, err)
	settled := len(r.complaints())

	must(t, r.open().Begin(time.Now()))
	both := filepath.Join(r.dir, "trust-both.pem")
	r.early("does not trust the new authority")
	r.trust(both, r.hosts...)
	r.early("does not trust the new authority") // no etcd has read it
	r.restart("trust both authorities")
	s := r.next()
	if s.Step != 2 || len(s.Bundles) != voters {
		t.Fatalf("%+v", s)
	}

	r.early("shows a certificate of the old authority")
	for i, h := range r.hosts {
		if i == len(r.hosts)-1 {
			r.early(h.Options.Name +
				" at " + address(h.Options.ClientURL) + " shows a certificate of the old authority")
		}
		install(h.Options.Name, s.Bundles[i])
		r.everyPair()
	}
	s = r.next()
	if s.Step != 3 {
		t.Fatalf("%+v", s)
	}
	r.early("still trusts the old authority")
	r.trust(s.Trust, r.hosts...)
	r.restart("trust the new authority alone")
	if s = r.next(); s.Step != 0 || s.New == "" {
		t.Fatalf("%+v", s)
	}
	r.ended(settled, both, install)
}

// ended looks at a cluster that has changed to the other authority: nothing was refused meanwhile but what was to be.
func (r *rotation) ended(settled int, both string, install func(host, bundle string)) {
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
	said := r.complaints()[settled:]
	if len(said) != r.refused {
		r.t.Errorf("%d connections were refused for a certificate, and %d were to be:\n%s", len(said), r.refused,
			strings.Join(said, ""))
	}
	n1 := r.hosts[0]
	bundle, err := r.open().Renew(n1.Options.Name, nil, time.Now().Add(2*time.Second))
	must(r.t, err)
	install(n1.Options.Name, bundle)
	r.everyPair()
	r.verify(len(r.hosts), 0)
}

func TestThreeVotersChangeToAnotherAuthorityUnderWrites(t *testing.T) {
	t.Parallel()
	rotates(t, 3)
}
