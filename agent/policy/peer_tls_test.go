// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

const securedURL = "https://n1:2380"

// securing returns the view of n1, which is about to change its peer URL from http to https. Every etcd has a
// certificate.
func securing() View {
	v := readdressView()
	v.Self.NewPeerURL = securedURL
	v.Self.PeerFiles = PeerFiles{Configured: true, Checked: true}
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].PeerTLS = PeerTLSReady
	}
	return v
}

// verifyingHTTPS registers the https URL, and verifies it.
func verifyingHTTPS(v *View) {
	verifying(v)
	v.Self.PeerURL, v.Cluster.Members[0].PeerURL, v.Hosts[0].PeerURL = securedURL, securedURL, securedURL
}

func TestNoURLBecomesHTTPSWhileAMemberHasNoCertificate(t *testing.T) {
	t.Parallel()
	none := func(v *View) { v.Cluster.Members[2].PeerTLS = PeerTLSNone }
	begun := func(v *View) { v.Op.Phase = PhaseBegun }
	play(t, securing, []scene{
		{"all members have a certificate", nil, StepUpdateMember, ""},
		{"one member has no certificate", none, StepNone, PeerTLSMissing},
		{"it is unknown whether one has a certificate", func(v *View) {
			v.Cluster.Members[2].PeerTLS = PeerTLSUnknown
		}, StepNone, PeerTLSMissing},
		{"one member has no certificate when the operation begins", func(v *View) { none(v); begun(v) }, StepEndOp, ""},
		{"one has had none for an hour", func(v *View) { none(v); v.Op.WrittenFor = time.Hour }, StepSetPhase, ""},
		{"one member has no certificate before the operation", func(v *View) {
			none(v)
			v.Op, v.IdleFor, v.Lock, v.Asked.Begun, v.Asked.Seen = nil, time.Hour, Lock{Known: true}, false, false
		}, StepNone, PeerTLSMissing},
		{
			"its own certificate is not configured",
			func(v *View) { v.Self.PeerFiles.Configured = false }, StepNone, PeerTLSMissing,
		},
		{
			"its own certificate is not checked",
			func(v *View) { v.Self.PeerFiles.Checked = false }, StepNone, PeerTLSMissing,
		},
		{"its own certificate is unsuitable", func(v *View) {
			v.Self.PeerFiles.Problem = "not valid for n1"
		}, StepNone, PeerTLSMissing},
		{"its own process has none yet", func(v *View) {
			v.Cluster.Members[0].PeerTLS = PeerTLSNone
		}, StepUpdateMember, ""},
		{"an http URL needs none", func(v *View) { none(v); v.Self.NewPeerURL = newURL }, StepUpdateMember, ""},
		{"etcd is stopped, and is not kept down", func(v *View) {
			none(v)
			v.Asked.Stopped, v.Unit.State, v.Op.Phase = true, UnitInactive, PhaseDown
		}, StepWriteEnv, ""},
		{"etcd is stopped, and its environment is written", func(v *View) {
			none(v)
			v.Asked.Stopped, v.Unit.State, v.Op.Phase, v.Unit.EnvReady = true, UnitInactive, PhaseDown, true
		}, StepStartUnit, ""},
		{"a member has lost its certificate since", func(v *View) {
			none(v)
			verifyingHTTPS(v)
		}, StepEndOp, ""},
	})
}

func TestTheWayBackFromHTTPSIsOpenWhileTheCertificatesStay(t *testing.T) {
	t.Parallel()
	back := func() View {
		v := securing()
		for i := range v.Cluster.Members {
			url := strings.Replace(v.Cluster.Members[i].PeerURL, "http:", "https:", 1)
			v.Cluster.Members[i].PeerURL, v.Hosts[i].PeerURL = url, url
		}
		v.Self.PeerURL, v.Op.PeerURL = v.Cluster.Members[0].PeerURL, v.Cluster.Members[0].PeerURL
		v.Self.NewPeerURL = peerPrefix + "n1"
		return v
	}
	undo := func(v *View) { // of a change to https
		v.Op.PeerURL, v.Op.Restarted = v.Self.NewPeerURL, true
	}
	play(t, back, []scene{
		{"the member list is updated", nil, StepUpdateMember, ""},
		{"its certificate is unsuitable", func(v *View) { v.Self.PeerFiles.Problem = "expired" }, StepUpdateMember, ""},
		{
			"the certificates were removed too early", func(v *View) { v.Self.PeerFiles = PeerFiles{} }, StepNone,
			PeerTLSMissing,
		},
		{
			"the certificates were removed, and the change is undone",
			func(v *View) { undo(v); v.Self.PeerFiles = PeerFiles{} },
			StepUpdateMember, "",
		},
		{"a restart with certificates removed while others are https", func(v *View) {
			v.Self.PeerFiles, v.Self.NewPeerURL = PeerFiles{}, ""
			v.Self.PeerURL = peerPrefix + "n1"
			v.Cluster.Members[0].PeerURL, v.Hosts[0].PeerURL = v.Self.PeerURL, v.Self.PeerURL
			v.Op.PeerURL = v.Self.PeerURL
		}, StepNone, PeerTLSMissing},
		{"certificates that quorumd does not configure, and another https URL", func(v *View) {
			v.Self.PeerFiles, v.Self.NewPeerURL = PeerFiles{}, "https://n1.new:2380"
		}, StepUpdateMember, ""},
	})
}

func TestAHostWithAnHTTPSURLAndNoConfiguredCertificateSendsNoRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		configured bool
		url        string
		want       bool
	}{{true, "http://n1", true}, {true, securedURL, true}, {false, "http://n1", true}, {false, securedURL, false}} {
		if got := RequestsPeers(c.configured, c.url); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestTheReasonNamesTheHostsAndWhatTheyReport(t *testing.T) {
	t.Parallel()
	v := securing()
	v.Cluster.Members[1].PeerTLS, v.Cluster.Members[2].PeerTLS = PeerTLSNone, PeerTLSNone
	if text, _ := peerTLSMissing(v); !strings.Contains(text, "on n2 and n3 was started without") ||
		!strings.Contains(text, "quorumctl readdress n2 n3 ") {
		t.Error(text)
	}
	v = securing()
	verifyingHTTPS(&v)
	v.Hosts[1].Answered, v.Hosts[1].Unreached = false, "it closes the connection"
	if text := urlUnverified(v); !strings.HasSuffix(text, "; n2 reports: it closes the connection") {
		t.Error(text)
	}
	v = securing()
	v.Hosts[2].Answered, v.Hosts[2].Unreached = false, "its certificate is not accepted"
	if d := Decide(v); !strings.HasSuffix(d.Reasons[0].Text, "; n3 reports: its certificate is not accepted") {
		t.Error(d.Reasons)
	}
}

func TestAProblemIsReportedUntilTheCertificateHasBeenChecked(t *testing.T) {
	t.Parallel()
	v := securing()
	if text := PeerTLSProblem(v); text != "" {
		t.Error(text)
	}
	v.Self.PeerFiles.Checked = false // the agent has just started
	text := PeerTLSProblem(v)
	if !strings.Contains(text, "has not been checked yet") {
		t.Error(text)
	}
	all := []RolloutHost{{
		ID: "n1", Name: "n1", Manage: true, Member: true, PeerURL: peerPrefix + "n1", NewPeerURL: securedURL,
		PeerTLS: PeerTLSReady, PeerTLSProblem: text,
	}}
	_, r := RolloutHosts(all, []string{"n1"}, WorkReaddress, "")
	if r == nil || r.Hint != "try again in a few seconds" {
		t.Errorf("%+v", r)
	}
	v.Self.NewPeerURL = newURL // nothing has to be checked
	if text := PeerTLSProblem(v); text != "" {
		t.Error(text)
	}
}
