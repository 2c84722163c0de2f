// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	lookTimeout  = 5 * time.Second // time limit of one connection
	probeLife    = 10 * time.Minute
	maxAnswer    = 1 << 20 // bytes
	maxPorts     = 256
	maxMemberURL = 8 // limit of the client URLs, and of the peer URLs, of one member
)

// The CAs that may have signed the certificate of a port.
const (
	ByOld   = "old"
	ByNew   = "new"
	ByOther = "other" // neither the old nor the new CA, or the certificate is not valid now or not for the address
)

// Answer describes whether a port accepts clients with a certificate of a CA.
type Answer string

// The answers of a port.
const (
	Accepts Answer = "accepts"
	Refuses Answer = "refuses"
	Unknown Answer = "unknown"
)

// Port describes a port of a member, as observed in TLS handshakes.
type Port struct {
	Host  string `json:"host"` // name of the member, or of the host in its certificate; empty if neither is known
	URL   string `json:"url"`
	For   string `json:"for"`             // client or peer
	Shows string `json:"shows,omitempty"` // CA that signed the port's certificate: old, new or other; empty if unknown
	Old   Answer `json:"old"`             // the answer to a client with a certificate of the old CA
	New   Answer `json:"new"`
	Why   string `json:"why,omitempty"` // why an answer is unknown
}

// CheckTrust makes TLS handshakes with the client and peer ports of every member, once with a certificate of the old CA
// and once with a certificate of the new CA. It creates these certificates for the check and does not store them. If
// only the CA of the peers changes, it checks only the peer ports. It reads the member lists from the peer ports at
// addresses, each HOST:PORT. Without addresses, it uses those in the hosts' certificates with port 2380. If no rotation
// is in progress, it does nothing.
func (a *Directory) CheckTrust(ctx context.Context, addresses []string, now time.Time) ([]Port, error) {
	if a.rotation == nil {
		return nil, nil
	}
	l, err := a.newTrustCheck(now)
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		if addresses, err = a.peerAddresses(); err != nil {
			return nil, err
		}
	}
	ports, err := l.members(ctx, addresses)
	if err != nil {
		return nil, err
	}
	var wait sync.WaitGroup
	for i := range ports {
		wait.Go(func() { l.port(ctx, &ports[i]) })
	}
	wait.Wait()
	return ports, nil
}

// trustCheck holds the client certificates for each of the two ports, and the CAs to verify the servers' certificates.
type trustCheck struct {
	now            time.Time
	clients, peers probes
	peersOnly      bool // the clients' CA does not change
}

// probes are the certificates and CAs for one of etcd's two ports.
type probes struct {
	old, next          tls.Certificate
	trusted            tls.Certificate // the certificate that every host has accepted since before this step
	oldRoots, newRoots *x509.CertPool
}

func (a *Directory) newTrustCheck(now time.Time) (trustCheck, error) {
	r := a.rotation
	l := trustCheck{now: now, peersOnly: r.Peers}
	var clientsErr, peersErr error
	l.clients, clientsErr = r.newProbes(caCert, now)
	l.peers, peersErr = r.newProbes(peerCACert, now)
	return l, errors.Join(clientsErr, peersErr)
}

func (r *rotation) newProbes(file string, now time.Time) (p probes, err error) {
	old, next := r.old.of(file), r.next.of(file)
	if p.old, err = old.probe(now); err != nil {
		return p, err
	}
	if p.next, err = next.probe(now); err != nil {
		return p, err
	}
	if p.trusted = p.old; r.Step > stepBoth {
		p.trusted = p.next
	}
	p.oldRoots, p.newRoots = x509.NewCertPool(), x509.NewCertPool()
	p.oldRoots.AddCert(old.cert)
	p.newRoots.AddCert(next.cert)
	return p, nil
}

// probe creates a client certificate like quorumd's. It is valid for minutes and exists only in memory.
func (s signer) probe(now time.Time) (tls.Certificate, error) {
	template, err := newTemplate(now, now.Add(probeLife))
	if err != nil {
		return tls.Certificate{}, err
	}
	template.Subject = pkix.Name{CommonName: User}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.cert, &key.PublicKey, s.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// peerAddresses returns the likely addresses of the hosts' peer ports.
func (a *Directory) peerAddresses() ([]string, error) {
	hosts, err := a.Hosts()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, name := range hosts {
		leaf, err := a.newest(name)
		if err != nil {
			return nil, err
		}
		for _, at := range describe("", leaf, time.Time{}).Names {
			all = append(all, net.JoinHostPort(at, "2380"))
		}
	}
	return all[:min(len(all), maxPorts)], nil
}

// members returns the ports of all members listed by the hosts that answer at these addresses.
func (l trustCheck) members(ctx context.Context, addresses []string) ([]Port, error) {
	lists := make([][]Port, len(addresses))
	whys := make([]error, len(addresses))
	var wait sync.WaitGroup
	for i, at := range addresses {
		wait.Go(func() { lists[i], whys[i] = l.listed(ctx, at) })
	}
	wait.Wait()
	all := slices.Concat(lists...)
	if len(all) == 0 {
		return nil, refused("run this where the peer ports of the hosts (2380) can be reached; if the ports "+
			"differ, pass them with --peers HOST:PORT", "no member returned the member list: %s", sum(texts(whys)))
	}
	slices.SortFunc(all, func(a, b Port) int {
		// prefer the entry with a name: a member has none until it has started
		return cmp.Or(cmp.Compare(a.URL, b.URL), -cmp.Compare(a.Host, b.Host))
	})
	all = slices.CompactFunc(all, func(a, b Port) bool { return a.URL == b.URL })
	slices.SortStableFunc(all, func(a, b Port) int { return cmp.Compare(a.Host, b.Host) })
	if len(all) > maxPorts {
		return nil, fmt.Errorf("the members list %d URLs; the limit is %d", len(all), maxPorts)
	}
	return all, nil
}

func texts(errs []error) (all []string) {
	for _, err := range errs {
		if err != nil {
			all = append(all, err.Error())
		}
	}
	return append(all, "no host has certificates")[:max(len(all), 1)]
}

// listed reads the member list from a peer port.
func (l trustCheck) listed(ctx context.Context, at string) ([]Port, error) {
	body, _, _, err := exchange(ctx, at, l.peers.trusted, "/members")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	var members []struct {
		Name       string   `json:"name"`
		PeerURLs   []string `json:"peerURLs"`
		ClientURLs []string `json:"clientURLs"`
	}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, fmt.Errorf("%s returned no member list: %w", at, err)
	}
	var all []Port
	for _, m := range members {
		if len(m.PeerURLs) > maxMemberURL || len(m.ClientURLs) > maxMemberURL || len(m.Name) > 256 {
			return nil, fmt.Errorf("%s lists a member with too many URLs or an overlong name", at)
		}
		for _, u := range m.PeerURLs {
			all = append(all, Port{Host: m.Name, URL: u, For: "peer", Old: Unknown, New: Unknown})
		}
		if l.peersOnly {
			continue
		}
		for _, u := range m.ClientURLs {
			all = append(all, Port{Host: m.Name, URL: u, For: "client", Old: Unknown, New: Unknown})
		}
	}
	return all, nil
}

// port checks one port with both certificates.
func (l trustCheck) port(ctx context.Context, p *Port) {
	u, err := url.Parse(p.URL)
	if err != nil || u.Scheme != "https" {
		p.Why = "its URL is not https"
		return
	}
	at, of := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")), l.clients
	if p.For == "peer" {
		of = l.peers
	}
	for _, probe := range []struct {
		shown tls.Certificate
		into  *Answer
	}{{of.old, &p.Old}, {of.next, &p.New}} {
		_, leaf, asked, err := exchange(ctx, at, probe.shown, "/version")
		if leaf != nil {
			p.Shows = of.signerOf(leaf, u.Hostname(), l.now)
			p.Host = cmp.Or(p.Host, leaf.Subject.CommonName)
		}
		remote, refusal := errors.AsType[*net.OpError](err)
		switch {
		case leaf != nil && !asked:
			p.Why = "it asks for no client certificate, so its trusted CAs cannot be seen (client-cert-auth)"
		case err == nil:
			*probe.into = Accepts
		case refusal && remote.Op == "remote error": // crypto/tls reports a TLS alert from the server with this Op
			*probe.into = Refuses
		default:
			p.Why = err.Error()
		}
	}
}

// signerOf returns which CA signed the certificate of a server with this name.
func (p probes) signerOf(leaf *x509.Certificate, name string, now time.Time) string {
	for by, roots := range map[string]*x509.CertPool{ByOld: p.oldRoots, ByNew: p.newRoots} {
		if _, err := leaf.Verify(x509.VerifyOptions{
			DNSName: name, Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}); err == nil {
			return by
		}
	}
	return ByOther
}

// exchange requests a path with a client certificate. It returns the response body, the server's certificate, and
// whether the server requested a client certificate. With TLS 1.3, a server rejects a certificate only after the
// handshake, so only a response shows that it was accepted.
func exchange(ctx context.Context, at string, show tls.Certificate, path string) (body []byte,
	shown *x509.Certificate, asked bool, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, nil, false, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, nil, false, err
	}
	name, _, err := net.SplitHostPort(at)
	if err != nil {
		return nil, nil, false, err
	}
	secured := tls.Client(conn, &tls.Config{
		ServerName: name, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: true, // signerOf verifies the server's certificate, and the request contains no secret
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) > 0 {
				shown = s.PeerCertificates[0]
			}
			return nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			return &show, nil // present the certificate even if the server does not announce its CA
		},
	})
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, shown, asked, err
	}
	_, writeErr := io.WriteString(secured, "GET "+path+" HTTP/1.1\r\nHost: "+at+"\r\nConnection: close\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(io.LimitReader(secured, maxAnswer)), nil)
	if err != nil {
		if _, alert := errors.AsType[*net.OpError](err); !alert {
			err = cmp.Or(writeErr, err)
		}
		return nil, shown, asked, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New("it answers " + strconv.Itoa(answer.StatusCode))
	}
	return body, shown, asked, err
}

// missing returns what the hosts still lack for the step. It ignores the hosts in without.
func missing(step int, hosts []string, ports []Port, without []string) (all []string) {
	seen := map[string]bool{}
	for _, p := range ports {
		if p.Host != "" {
			seen[p.Host] = true
		}
		if slices.Contains(without, p.Host) {
			continue
		}
		if lack := p.lacks(step); lack != "" {
			all = append(all, p.describe(lack))
		}
	}
	for _, name := range hosts {
		if !seen[name] && !slices.Contains(without, name) {
			all = append(all, name+" has certificates but is not a member, so its trusted CAs cannot be seen")
		}
	}
	return all
}

// leftOut returns the skipped hosts that are not members or have a port that could not be checked, and what the checked
// ports of skipped hosts lack.
func leftOut(step int, ports []Port, without []string) (unseen, behind []string) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(without))) {
		seen := false
		for _, p := range ports {
			if p.Host != name {
				continue
			}
			if seen = p.Shows != "" && p.Old != Unknown && p.New != Unknown; !seen {
				break
			}
			if lack := p.lacks(step); lack != "" {
				behind = append(behind, p.describe(lack))
			}
		}
		if !seen {
			unseen = append(unseen, name)
		}
	}
	return unseen, behind
}

// describe prefixes a text about the port with its host and address.
func (p Port) describe(lack string) string {
	return fmt.Sprintf("%s at %s %s", cmp.Or(p.Host, "a host"), strings.TrimPrefix(p.URL, "https://"), lack)
}

// lacks returns why a port has not completed a step, or an empty string.
func (p Port) lacks(step int) string {
	switch {
	case p.Shows == "":
		return "cannot be checked: " + cmp.Or(p.Why, "nothing answers")
	case p.Shows == ByOther:
		return "shows a certificate that neither CA signed for that address"
	case p.New == Refuses:
		return "does not trust the new CA"
	case p.New == Unknown:
		return "is not known to trust the new CA: " + cmp.Or(p.Why, "no answer")
	case step == stepBoth && p.Old != Accepts:
		return "no longer trusts the old CA"
	case step >= stepLeaves && p.Shows != ByNew:
		return "presents a certificate signed by the old CA"
	case step == stepNewOnly && p.Old == Accepts:
		return "still trusts the old CA"
	case step == stepNewOnly && p.Old == Unknown:
		return "may still trust the old CA: " + cmp.Or(p.Why, "no answer")
	}
	return ""
}
