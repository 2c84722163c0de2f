// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"math"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

const (
	peerFilesEvery = 5 * time.Second // interval of the file checks while this host's peer URL is to become https
	// interval of the requests until all members in PeersAsked have answered
	peerRequestsEvery = 2 * time.Second
	peerRequestBound  = 3 * time.Second // timeout of the request to one member
)

// PeerTLS tests the peer certificate with which this host's etcd is configured.
type PeerTLS interface {
	// Check returns an error if etcd cannot use the certificate for this host's peer URL.
	Check(ctx context.Context) error
	// Request connects to the member at a peer URL with the certificate, and returns an error unless the member
	// answers.
	Request(ctx context.Context, peerURL string) error
}

// processFiles are the files with which a process of etcd was started.
type processFiles struct {
	pid   int
	files config.PeerFiles
}

// askPeerTLS reads, in the background, which peer certificate the running etcd was started with. A process keeps its
// certificate, so the answer is valid as long as that process runs.
func (o *Observer) askPeerTLS(ctx context.Context, r *round.Round) {
	if o.opt.PeerFiles == nil || r.UnitErr != nil || stateOfUnit(r) != policy.UnitActive {
		o.process.Forget()
		return
	}
	pid, every := r.Unit.PID, binaryEvery*o.opt.Config.Timing.Interval
	if last, _, known := o.process.Get(o.opt.Now(), maxAge*every); known && last.pid != pid {
		o.process.Forget()
	}
	o.process.Refresh(ctx, o.opt.Now, every, lookTimeout, func(context.Context) (processFiles, error) {
		f, err := o.opt.PeerFiles(pid)
		return processFiles{pid, config.PeerFiles{Cert: f[0], Key: f[1], CA: f[2]}}, err
	})
	last, _, known := o.process.Get(o.opt.Now(), maxAge*every)
	switch {
	case !known || last.pid != pid:
	case last.files.Complete() && last.files == o.opt.Config.PeerFiles():
		r.PeerTLS = policy.PeerTLSReady
	default:
		r.PeerTLS = policy.PeerTLSNone
	}
}

// checkPeerFiles checks the files of the configured peer certificate in the background, while this host's peer URL is
// to become https.
func (o *Observer) checkPeerFiles(ctx context.Context, r *round.Round) {
	r.PeerFiles.Configured = o.opt.PeerTLS != nil
	own, listed := r.OwnMember(r.Membership, o.opt.Config.Etcd.PeerURL)
	self := policy.Self{PeerURL: firstOf(own.PeerURLs), NewPeerURL: o.opt.Config.Etcd.PeerURL}
	if !r.PeerFiles.Configured || !listed || !policy.ChecksPeerFiles(self) {
		return
	}
	o.files.Refresh(ctx, o.opt.Now, peerFilesEvery, lookTimeout, func(ctx context.Context) (string, error) {
		return textOf(o.opt.PeerTLS.Check(ctx)), nil // the polled value is the reason why etcd cannot use the files
	})
	r.PeerFiles.Problem, _, r.PeerFiles.Checked = o.files.Get(o.opt.Now(), maxAge*peerFilesEvery)
}

// requestPeers sends requests, in the background, to the https peer URLs of the members in PeersAsked. An active
// connection to them proves nothing, because they connect to this host's etcd as well.
func (o *Observer) requestPeers(ctx context.Context, r *round.Round) {
	own, _ := r.OwnMember(r.Membership, o.opt.Config.Etcd.PeerURL)
	var urls []string
	for _, m := range r.PeersAsked(own.ID) {
		urls = append(urls, round.SecuredURLs(m)...)
	}
	r.PeerRequests.Unneeded = !policy.RequestsPeers(o.opt.PeerTLS != nil, firstOf(own.PeerURLs))
	if len(urls) == 0 || r.AskedSince == 0 || r.PeerRequests.Unneeded {
		o.peers.Forget()
		return
	}
	last, _, _ := o.peers.Get(o.opt.Now(), math.MaxInt64)
	if r.PeerRequests = last; last.Answered(urls, r.AskedSince) {
		return
	}
	bound := time.Duration(len(urls)+1) * peerRequestBound
	o.peers.Refresh(ctx, o.opt.Now, peerRequestsEvery, bound, func(ctx context.Context) (round.PeerRequests, error) {
		sent := round.PeerRequests{At: o.opt.Now(), Of: map[string]string{}}
		for _, url := range urls {
			sent.Of[url] = o.requestPeer(ctx, url)
		}
		return sent, nil
	})
}

// requestPeer returns why the member at a URL does not answer; empty if it answers.
func (o *Observer) requestPeer(ctx context.Context, url string) string {
	if o.opt.PeerTLS == nil {
		return "no peer certificate, key and CA are configured on " + o.opt.Config.Host.Name
	}
	ctx, cancel := context.WithTimeout(ctx, peerRequestBound)
	defer cancel()
	return textOf(o.opt.PeerTLS.Request(ctx, url))
}

// textOf returns the text of an error; empty if it is nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
