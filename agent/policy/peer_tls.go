// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"strings"
)

// A readdress can also change the scheme of a peer URL, on the same port, one host at a time. An etcd without a
// certificate cannot connect to a member whose peer URL is https. The failure goes unnoticed at first, because the
// other member still connects to this etcd over http. Therefore, before the first URL becomes https, the process of
// every member must have been started with a certificate, its key and a CA; a changed configuration takes effect only
// at a restart. On the way back to http, the certificates must stay until all URLs are http.

// PeerTLS states whether a running etcd uses the peer certificate, key and CA that its host's configuration names.
type PeerTLS string

// The states. The zero value means that the state is unknown.
const (
	PeerTLSUnknown PeerTLS = ""
	PeerTLSNone    PeerTLS = "none" // etcd lacks at least one of these files, or uses files that are not configured
	PeerTLSReady   PeerTLS = "ready"
)

// PeerFiles is the observed state of the files that are configured for https between members.
type PeerFiles struct {
	Configured bool   // a certificate, its key and a CA are configured
	Checked    bool   // the files were recently read as etcd's user
	Problem    string // why etcd cannot use the files for this host's peer URL; empty if it can
}

// ChecksPeerFiles reports whether the files must be checked now, because the configuration changes this host's peer URL
// to https.
func ChecksPeerFiles(s Self) bool { return secured(s.NewPeerURL) && !secured(s.PeerURL) }

// RequestsPeers reports whether a host sends test requests to the https members that an operation asks about.
// configured reports whether its configuration has a peer certificate; peerURL is the URL of its member. If the URL is
// https and no certificate is configured, etcd has a certificate that quorumd's configuration does not name. The
// cluster then uses https already, so etcd's own connections are proof enough.
func RequestsPeers(configured bool, peerURL string) bool { return configured || !secured(peerURL) }

// PeerTLSProblem returns why this host's etcd cannot use https between members as configured, or that this has not been
// checked yet, as right after a restart of the agent; empty if it can, or if that does not matter. The files are
// checked only before the URL becomes https, so unusable files do not block a change back to http.
func PeerTLSProblem(v View) string {
	const set = " → set etcd.tls in quorumd.yaml, and reload quorumd"
	f := v.Self.PeerFiles
	others := slices.ContainsFunc(v.Cluster.Members, func(m Member) bool {
		return m.PeerURL != v.Self.PeerURL && secured(m.PeerURL)
	})
	next := cmp.Or(v.Self.NewPeerURL, v.Self.PeerURL)
	switch {
	case ChecksPeerFiles(v.Self) && !f.Configured:
		return "etcd.peerURL is " + next + ", but no peer certificate, key and CA are configured" + set
	case ChecksPeerFiles(v.Self) && !f.Checked:
		return "the peer certificate has not been checked yet → try again in a few seconds"
	case ChecksPeerFiles(v.Self) && f.Problem != "":
		return f.Problem
	case others && !f.Configured && (!secured(next) || !secured(v.Self.PeerURL)):
		return "other members' peer URLs are https, but no peer certificate, key and CA are configured" + set +
			"; remove it only once all peer URLs are http"
	}
	return ""
}

// peerTLSMissing keeps a readdress from restarting this host's etcd with an https peer URL that other members could not
// use, or without the certificate that it needs to connect to others. A member whose state is unknown counts as having
// no certificate, even if it is down, because it may start without one. peerTLSMissing does not apply once this host's
// operation may have updated the member list, if the configured URL is http.
func peerTLSMissing(v View) (string, bool) {
	if v.Asked == nil || v.Asked.Work != WorkReaddress || v.owns(KindCycle) && urlUpdated(v) && v.toHTTP() {
		return "", false
	}
	if why := PeerTLSProblem(v); why != "" {
		return why, true
	}
	if !ChecksPeerFiles(v.Self) {
		return "", false
	}
	var lacking, unknown []string
	for _, m := range v.Cluster.Members {
		switch {
		case m.PeerURL == v.Self.PeerURL:
		case m.PeerTLS == PeerTLSUnknown:
			unknown = append(unknown, m.label())
		case m.PeerTLS != PeerTLSReady:
			lacking = append(lacking, m.label())
		}
	}
	why, remedy := lacksPeerTLS(lacking, unknown)
	return why + " → " + remedy, why != ""
}

// toHTTP reports whether the configuration changes this host's peer URL to an http URL.
func (v View) toHTTP() bool { return v.Self.NewPeerURL != "" && !secured(v.Self.NewPeerURL) }

// lacksPeerTLS returns why no peer URL may become https, and the remedy: the processes of the members in lacking have
// no certificate, or it is unknown whether those of the members in unknown have one.
func lacksPeerTLS(lacking, unknown []string) (why, remedy string) {
	switch {
	case len(lacking) > 0:
		names := joinNames(lacking)
		return "the running etcd on " + names + " was started without the configured peer certificate, key and CA",
			"on " + names + " set etcd.tls, keep etcd.peerURL at http and reload quorumd; then: quorumctl readdress " +
				strings.Join(lacking, " ") + " --reason '<why>'"
	case len(unknown) > 0:
		return "it is unknown whether etcd on " + joinNames(unknown) + " runs with a peer certificate, key and CA",
			"start etcd and quorumd there; if the host is gone for good: quorumctl member remove NAME --reason '<why>'"
	}
	return "", ""
}

// againstScheme returns why missing or unusable peer certificates keep a rollout from readdressing a host, or nil.
func againstScheme(all []RolloutHost, h RolloutHost) *Refusal {
	if h.PeerTLSProblem != "" {
		why, remedy, _ := strings.Cut(h.PeerTLSProblem, " → ")
		return conflicts(PeerTLSMissing, h.Name+": "+why, cmp.Or(remedy, PeerTLSMissing.Info().Remedy))
	}
	if !secured(h.NewPeerURL) || secured(h.PeerURL) {
		return nil
	}
	var lacking, unknown []string
	for _, o := range all {
		switch {
		case o.ID == h.ID || !o.Member:
		case o.PeerTLS == PeerTLSUnknown:
			unknown = append(unknown, o.Name)
		case o.PeerTLS != PeerTLSReady:
			lacking = append(lacking, o.Name)
		}
	}
	if why, remedy := lacksPeerTLS(lacking, unknown); why != "" {
		return conflicts(PeerTLSMissing, "the new peer URL of "+h.Name+" is "+h.NewPeerURL+", but "+why, remedy)
	}
	return nil
}

func secured(url string) bool { return scheme(url) == "https" }
