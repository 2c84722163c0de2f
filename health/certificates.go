// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The codes of the check of certificates.
const (
	CertificateExpires     Code = "ETCD_CERTIFICATE_EXPIRES"
	CertificateExpiresSoon Code = "ETCD_CERTIFICATE_EXPIRES_SOON"
	CertificateInvalid     Code = "ETCD_CERTIFICATE_INVALID"
)

// Certificate is a certificate that connections to or within etcd depend on, as last read.
type Certificate struct {
	Of      Holder
	Name    string        // path of its file, or the host and port that presents it
	Subject string        // the name to which it was issued
	Until   time.Time     // end of its validity
	Left    time.Duration // remaining validity when it was read; negative if it has expired
	Life    time.Duration // whole period of validity
}

// Holder describes where a certificate was read.
type Holder string

// The possible holders of a certificate.
const (
	HolderOwn    Holder = "own"    // in a file of this host
	HolderCA     Holder = "ca"     // a CA certificate in a file of this host
	HolderMember Holder = "member" // presented by a member, to clients or peers
)

// CertificateReading contains the certificates that were read. The zero value means not measured.
type CertificateReading struct {
	// Known means that at least one certificate was read; otherwise Absent is the reason, as a stable text.
	Known  bool
	Absent string
	All    []Certificate
}

// These constants define how early an operator is warned. For a short-lived certificate, such as one renewed every day,
// the time is a fraction of its lifetime.
const (
	certificateEnds = 30 // days
	certificateSoon = 7  // days
	partEnds        = 4  // the lifetime divided by this replaces certificateEnds if it is less
	partSoon        = 10 // the lifetime divided by this replaces certificateSoon if it is less
	// beginsAhead is how far the issuer's clock may be ahead of this host's.
	beginsAhead = 5 * time.Minute
)

// declareCertificates declares the check of how long certificates are valid. It only advises, because other checks
// report the connections that an expired certificate breaks.
func declareCertificates() declaration {
	limit := func(of string, enter float64) Limit {
		return Limit{Of: of, Unit: "days", Enter: enter, Leave: enter, Below: true}
	}
	const remedy = "renew the certificate on the host with your CA ('quorumctl pki renew NAME', for a CA certificate " +
		"'quorumctl pki rotate begin') and install it. etcd and quorumd reload certificates without a restart; etcd " +
		"reads CA certificates only when it starts"
	return declaration{
		Check: Check{
			Name: "certificates", Component: Etcd, Gates: Nothing,
			Source: "the files of cluster.tls, the readable ones of etcd.tls and etcd.environment, and the " +
				"certificates that members present at their client and peer URLs",
			Limits: []Limit{
				limit("remaining validity (the limit is at most a quarter of the lifetime)", certificateEnds),
				limit("remaining validity (the limit is at most a tenth of the lifetime)", certificateSoon),
				limit("remaining validity", 0),
			},
			Problems: []Problem{
				{
					CertificateExpires, Etcd, Warm, "A certificate expires within weeks.",
					"After that, connections that use it are refused. A CA certificate expires on all hosts at " +
						"once, and the members' certificates may do the same.",
					remedy,
				},
				{
					CertificateExpiresSoon, Etcd, Slow, "A certificate expires within days.",
					"It should have been renewed by now, so its renewal is not working. After it expires, " +
						"connections that use it are refused.",
					remedy,
				},
				{
					CertificateInvalid, Etcd, Slow, "A certificate is expired or not yet valid.",
					"Peers and clients that validate it refuse the connection. A wrong clock has the same effect.",
					"check the clock with 'timedatectl'; then " + remedy,
				},
			},
			Runbook: findingRunbook,
		},
		start:  OK,
		gather: func(at *track) evidence { return &certificates{track: at} },
	}
}

// certificates is the evidence on how long the certificates are still valid.
type certificates struct {
	plain

	track *track
	seen  CertificateReading
	clock Figure // maximum error of the wall clock, in seconds
}

// urgency is how close a certificate is to its expiry.
type urgency int

const (
	plenty urgency = iota
	ends
	endsSoon
	invalid
)

func (c Certificate) urgency() urgency {
	switch {
	case c.Left <= 0 || c.Left > c.Life+beginsAhead: // expired, or not yet valid
		return invalid
	case c.Left < min(certificateSoon*day, c.Life/partSoon):
		return endsSoon
	case c.Left < min(certificateEnds*day, c.Life/partEnds):
		return ends
	}
	return plenty
}

// State returns the health state for one certificate: OK as long as no action is needed.
func (c Certificate) State() State {
	switch c.urgency() {
	case plenty:
		return OK
	case ends:
		return Warm
	default:
		return Slow
	}
}

func (c *certificates) report(v *Assessment) { v.Figures.Certificates = c.seen.All }

func (c *certificates) read(in Input) { c.seen, c.clock = in.Etcd.Certificates, in.Machine.ClockError }

func (c *certificates) absent() string {
	if c.seen.Known {
		return ""
	}
	return cmp.Or(c.seen.Absent, notYet)
}

// worst returns the highest urgency and the certificates that have it, in the order in which they expire.
func (c *certificates) worst() (most urgency, which []Certificate) {
	for _, one := range c.seen.All {
		switch u := one.urgency(); {
		case u > most:
			most, which = u, []Certificate{one}
		case u == most:
			which = append(which, one)
		}
	}
	slices.SortStableFunc(which, func(a, b Certificate) int { return cmp.Compare(a.Left, b.Left) })
	return most, which
}

func (c *certificates) text() string {
	most, which := c.worst()
	if len(which) == 0 || most == plenty {
		return plural(len(c.seen.All), "certificate") + " with enough validity left"
	}
	var all []string
	for _, one := range which[:min(len(which), certificatesNamed)] {
		all = append(all, one.String())
	}
	text := strings.Join(all, "; ")
	if more := len(which) - certificatesNamed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	switch most {
	case ends:
		text += fmt.Sprintf(", limit %d days, or a quarter of the lifetime if that is less", certificateEnds)
	case endsSoon:
		text += fmt.Sprintf(", limit %d days, or a tenth of the lifetime if that is less", certificateSoon)
	}
	if c.clock.Known && c.clock.Value > clockError {
		text += "; the clock of this host is not synchronised"
	}
	return text
}

// certificatesNamed is the maximum number of certificates that a text names.
const certificatesNamed = 3

// String returns what identifies the certificate, and until when, or from when on, it is valid.
func (c Certificate) String() string {
	name := c.Name
	if c.Subject != "" {
		name += " (subject " + c.Subject + ")"
	}
	at := c.Until.UTC().Format("2006-01-02 15:04") + " UTC"
	switch {
	case c.Left <= 0:
		return fmt.Sprintf("%s expired on %s", name, at)
	case c.Left > c.Life:
		return fmt.Sprintf("%s is not valid before %s", name,
			c.Until.Add(-c.Life).UTC().Format("2006-01-02 15:04")+" UTC")
	case c.Left < 2*time.Hour:
		return fmt.Sprintf("%s expires on %s, in %.0f minutes", name, at, c.Left.Minutes())
	case c.Left < 2*day:
		return fmt.Sprintf("%s expires on %s, in %.0f hours", name, at, c.Left.Hours())
	}
	return fmt.Sprintf("%s expires on %s, in %.0f days", name, at, c.Left.Hours()/24)
}

func (c *certificates) transitions() []rule {
	when := func(u urgency) func() (string, bool) {
		return func() (string, bool) {
			most, _ := c.worst()
			return c.text(), most == u
		}
	}
	return []rule{
		{
			[]State{OK, Warm, Slow},
			Slow, CertificateInvalid, "a certificate is expired or not yet valid", when(invalid), false,
		},
		{
			[]State{OK, Warm},
			Slow, CertificateExpiresSoon,
			fmt.Sprintf("a certificate expires within %d days and within a tenth of its lifetime", certificateSoon),
			when(endsSoon), false,
		},
		{
			[]State{OK},
			Warm, CertificateExpires,
			fmt.Sprintf("a certificate expires within %d days and within a quarter of its lifetime", certificateEnds),
			when(ends), false,
		},
		{
			[]State{Warm, Slow},
			OK, "", "no certificate meets the condition of the finding any longer",
			func() (string, bool) {
				most, _ := c.worst()
				return c.text(), most < map[Code]urgency{
					CertificateExpires: ends, CertificateExpiresSoon: endsSoon, CertificateInvalid: invalid,
				}[c.track.Code]
			},
			true,
		},
	}
}
