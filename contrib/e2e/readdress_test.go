// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// configurePeerURL changes the peer URL in the configuration of a host, and restarts its agent.
func (h *host) configurePeerURL(url string) {
	h.w.t.Helper()
	h.stop()
	h.Options.PeerURL, h.Options.ListenPeerURL = url, url
	if err := h.WriteConfig(); err != nil {
		h.w.t.Fatal(err)
	}
	h.w.start(h)
}

// readdress starts a readdress of these hosts, or of all. It returns the reason if the request is refused.
func (h *host) readdress(hosts ...string) string {
	h.w.t.Helper()
	req := control.RolloutRequest{Work: policy.WorkReaddress, Hosts: hosts, Reason: "a new subnet"}
	refused := ""
	h.w.eventually("all hosts have published their records again", func() bool {
		_, refused = ask(h, req, h.Client.StartRollout)
		return !strings.Contains(refused, "no host in the cluster is called")
	})
	return refused
}

// plannedReaddress returns how many hosts a readdress of all hosts would include.
func (h *host) plannedReaddress() int {
	h.w.t.Helper()
	req := control.RolloutRequest{Work: policy.WorkReaddress, Reason: "a new subnet", DryRun: true}
	r, _ := ask(h, req, h.Client.StartRollout)
	return len(r.Hosts)
}

// peerURLs returns the registered peer URL of each member, by name.
func (w *world) peerURLs() map[string]string {
	urls := map[string]string{}
	for _, m := range w.members() {
		urls[m.Name] = strings.Join(m.PeerURLs, ",")
	}
	return urls
}

// rolloutIs reports whether a host observes that the rollout is in that state.
func (h *host) rolloutIs(state string) bool {
	s, ok := h.status()
	return ok && s.Rollout != nil && s.Rollout.State == state
}

// reports reports whether a host publishes a reason whose text contains the given text.
func (h *host) reports(code policy.ReasonCode, text string) bool {
	s, ok := h.status()
	return ok && slices.ContainsFunc(s.Reasons, func(r control.Reason) bool {
		return r.Code == string(code) && strings.Contains(r.Text, text)
	})
}

// connected returns an error unless the etcd of every host has a connection of its own to every other member.
func (w *world) connected() error {
	members, ids := w.members(), map[string]uint64{}
	for _, m := range members {
		ids[m.Name] = m.ID
	}
	for _, h := range w.hosts {
		for _, m := range members {
			if m.Name == h.Options.Name {
				continue
			}
			text, err := h.etcdMetrics()
			if err != nil {
				return err
			}
			active := fmt.Sprintf(`etcd_network_active_peers{Local="%x",Remote="%x"} 1`, ids[h.Options.Name], m.ID)
			if !strings.Contains(text, active) {
				return fmt.Errorf("etcd of %s has no active connection to %s", h.Options.Name, m.Name)
			}
		}
	}
	return nil
}

func TestAChangedPeerURLIsAppliedOnlyByAReaddress(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	ports := testbed.FreePorts(t, 3)
	before := w.peerURLs()
	load := w.retrying(50)
	urls := map[string]string{}
	for i, h := range w.hosts {
		urls[h.Options.Name] = fmt.Sprintf("http://127.0.0.1:%d", ports[i])
		h.configurePeerURL(urls[h.Options.Name])
	}
	for _, h := range w.hosts {
		w.eventually(h.Options.Name+" reports the changed URL and the remedy", func() bool {
			return h.reports(policy.HostConflict, "quorumctl readdress "+h.Options.Name)
		})
	}
	w.never(3*time.Second, "a member changes without a request", func() bool {
		now := w.peerURLs()
		return len(now) == 3 && (now["n1"] != before["n1"] || now["n2"] != before["n2"] || now["n3"] != before["n3"])
	})

	w.eventually("a readdress would include all hosts", func() bool { return w.hosts[0].plannedReaddress() == 3 })
	began, lines := time.Now(), len(w.mustHistory())
	plan, refused := ask(w.hosts[0], control.RolloutRequest{
		Work: policy.WorkReaddress, Reason: "a new subnet", DryRun: true,
	}, w.hosts[0].Client.StartRollout)
	if refused += w.hosts[0].readdress(); refused != "" {
		t.Fatal(refused)
	}
	w.within(4*formation, "the rollout is done", func() bool { return w.hosts[0].rolloutIs(record.RolloutDone) })
	w.checkPlan(plan.Steps, lines)
	t.Logf("the readdress of three hosts took %.1f s", time.Since(began).Seconds())
	checkReport(t, load)
	if now := w.peerURLs(); now["n1"] != urls["n1"] || now["n2"] != urls["n2"] || now["n3"] != urls["n3"] {
		t.Errorf("the peer URLs are %v, want %v", now, urls)
	}
	if err := w.connected(); err != nil {
		t.Error(err)
	}
	w.oneAtATime()
	w.verify(3, 0)
}

// oneAtATime checks in the history that no member's URL was updated before the previous one was verified.
func (w *world) oneAtATime() {
	w.t.Helper()
	lines, err := w.history()
	if err != nil {
		w.t.Fatal(err)
	}
	unverified, updates := "", 0
	for _, l := range lines {
		switch {
		case l.Kind == "step" && l.Code == string(policy.StepUpdateMember):
			if unverified != "" {
				w.t.Errorf("the URL of %s was updated before that of %s was verified", l.Name, unverified)
			}
			unverified = l.Name
			updates++
		case l.Kind == "operation" && l.Operation == policy.KindCycle && l.Name == unverified:
			unverified = ""
		}
	}
	if updates == 0 || unverified != "" {
		w.t.Errorf("%d updates, and the URL of %q was not verified", updates, unverified)
	}
}

// In the configuration of n2, etcd does not listen on the URL that the other members use.
func TestAReaddressWaitsUntilTheNewURLIsReachedOrIsUndone(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n2, n3 := w.hosts[1], w.hosts[2]
	before, listened := w.peerURLs(), n2.Options.ListenPeerURL
	ports := testbed.FreePorts(t, 2)
	n2.stop()
	n2.Options.PeerURL = fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	must(t, n2.WriteConfig())
	w.start(n2)
	n3.configurePeerURL(fmt.Sprintf("http://127.0.0.1:%d", ports[1]))
	w.eventually("n2 and n3 report the changed URLs", func() bool {
		return n2.reports(policy.HostConflict, "readdress n2") && n3.reports(policy.HostConflict, "readdress n3")
	})
	w.lead(w.hosts[0]) // so n2 goes before n3
	load := w.retrying(50)
	if refused := w.hosts[0].readdress("n2", "n3"); refused != "" {
		t.Fatal(refused)
	}
	const waits = "to report a connection to"
	w.within(2*formation, "n2 waits for the other hosts", func() bool {
		return n2.reports(policy.Returning, waits) || n2.reports(policy.NotBack, waits)
	})
	w.never(10*time.Second, "the URL of n3 changes as well", func() bool {
		now := w.peerURLs()
		return len(now) == 3 && now["n3"] != before["n3"]
	})
	n2.stop()
	n2.Options.PeerURL = listened // undo the change
	must(t, n2.WriteConfig())
	w.start(n2)
	w.within(4*formation, "the rollout is done", func() bool { return w.hosts[0].rolloutIs(record.RolloutDone) })
	if now := w.peerURLs(); now["n2"] != before["n2"] || now["n3"] != n3.Options.PeerURL {
		t.Errorf("the peer URLs are %v, before %v", now, before)
	}
	checkReport(t, load)
	if err := w.connected(); err != nil {
		t.Error(err)
	}
	w.verify(3, 0)
}

func TestAReaddressIsRefusedIfTheURLsDoNotFit(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, n2 := w.hosts[0], w.hosts[1]
	if got := n1.readdress(); !strings.Contains(got, "no host's configured peer or client URL differs") {
		t.Errorf("without a change: %q", got)
	}
	n2.configurePeerURL(w.peerURLs()["n3"])
	w.eventually("n2 reports that the URL is another member's", func() bool {
		return n2.reports(policy.HostConflict, "which is the peer URL of member n3")
	})
	if got := n1.readdress("n2"); !strings.Contains(got, "n2 and n3 would have the same peer URL") {
		t.Errorf("with the URL of n3: %q", got)
	}
	w.never(3*time.Second, "a member changes", func() bool { return !w.has(3, 0) })
}

func TestAReaddressCompletesAlthoughItsAgentIsKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"after begin-cycle", "before update-member", "after update-member", "after take-down", "after start-unit",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := threeIdleVoters(t)
			n2 := w.hosts[1]
			url := fmt.Sprintf("http://127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
			n2.configurePeerURL(url)
			w.eventually("n2 reports the changed URL", func() bool {
				return n2.reports(policy.HostConflict, "readdress n2")
			})
			n2.stopAt(at)
			load := w.retrying(20)
			if refused := w.hosts[0].readdress("n2"); refused != "" {
				t.Fatal(refused)
			}
			n2.waitStopped()
			n2.crash(at, agentOnly)
			n2.resume()
			w.start(n2)
			w.within(3*formation, "the rollout is done", func() bool {
				return w.hosts[0].rolloutIs(record.RolloutDone) && w.peerURLs()["n2"] == url
			})
			checkReport(t, load)
			if err := w.connected(); err != nil {
				t.Error(err)
			}
			w.verify(3, 0)
		})
	}
}

// etcdMetrics returns the metrics of the host's etcd.
func (h *host) etcdMetrics() (string, error) {
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: callTimeout}
	answer, err := web.Get(h.Options.ClientURL + "/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	return string(all), err
}
