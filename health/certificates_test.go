// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

// certificatesWith returns two certificates that are valid for a year: one with half a year left, and one with the
// given time left.
func certificatesWith(left time.Duration) CertificateReading {
	at := time.Date(2026, time.November, 22, 18, 30, 0, 0, time.UTC)
	of := func(name string, left time.Duration) Certificate {
		return Certificate{Name: name, Until: at.Add(left), Left: left, Life: 365 * day}
	}
	return CertificateReading{
		Known: true, All: []Certificate{of("/etc/quorumd/pki/ca.crt", 180*day), of("192.0.2.1:2379", left)},
	}
}

func certificateEdges() []edge {
	left := func(left time.Duration) func(*bench) {
		return func(b *bench) {
			b.etcd.Certificates = certificatesWith(left)
			b.look()
		}
	}
	return []edge{
		{"a certificate is expired or not yet valid", left(1), left(0)},
		{"a certificate expires within 7 days", left(7 * day), left(7*day - 1)},
		{"a certificate expires within 30 days", left(30 * day), left(30*day - 1)},
		{"no certificate meets the condition", left(7*day - 1), left(30 * day)},
	}
}

func TestACertificateIsReportedLongBeforeItExpires(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left time.Duration
		code Code
		text string
	}{
		{
			20 * day, CertificateExpires,
			"192.0.2.1:2379 expires on 2026-12-12 18:30 UTC, in 20 days, limit 30 days, or a quarter of the lifetime " +
				"if that is less",
		},
		{
			30 * time.Hour, CertificateExpiresSoon,
			"192.0.2.1:2379 expires on 2026-11-24 00:30 UTC, in 30 hours, limit 7 days, or a tenth of the lifetime " +
				"if that is less",
		},
		{
			90 * time.Minute, CertificateExpiresSoon,
			"192.0.2.1:2379 expires on 2026-11-22 20:00 UTC, in 90 minutes, limit 7 days, or a tenth of the lifetime " +
				"if that is less",
		},
		{-day, CertificateInvalid, "192.0.2.1:2379 expired on 2026-11-21 18:30 UTC"},
		{400 * day, CertificateInvalid, "192.0.2.1:2379 is not valid before 2026-12-27 18:30 UTC"},
	} {
		b := newBench(t, DefaultThresholds())
		b.etcd.Certificates = certificatesWith(c.left)
		b.look()
		if got := textOf(b.result, c.code); got != c.text || b.result.Gates.covers(Joins) && b.disk() == OK {
			t.Errorf("with %s left: %q, want %q", c.left, got, c.text)
		}
		b.machine.ClockError = known(16)
		b.look()
		if got := textOf(b.result, c.code); got != c.text+"; the clock of this host is not synchronised" {
			t.Errorf("with an unsynchronised clock: %q", got)
		}
		b.etcd.Certificates = certificatesWith(90 * day)
		b.look()
		if got := textOf(b.result, c.code); got != "" {
			t.Errorf("renewed: %q", got)
		}
	}
}

func TestACertificateOfOneDayIsFineForMostOfIt(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]urgency{
		18 * time.Hour: plenty, 6 * time.Hour: plenty, 5 * time.Hour: ends, 2 * time.Hour: endsSoon, 0: invalid,
	} {
		if got := (Certificate{Left: left, Life: day}).urgency(); got != want {
			t.Errorf("with %s left: %d, want %d", left, got, want)
		}
	}
}

func TestACertificateThatBeginsWithinTheClockSkewIsValid(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]urgency{
		0: plenty, 5 * time.Second: plenty, 5 * time.Minute: plenty, 5*time.Minute + 1: invalid,
	} {
		if got := (Certificate{Left: 90*day + ahead, Life: 90 * day}).urgency(); got != want {
			t.Errorf("%s before it begins: %d, want %d", ahead, got, want)
		}
	}
}

func TestACertificateIsNamedWithItsSubject(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.etcd.Certificates = certificatesWith(-day)
	b.etcd.Certificates.All[1].Subject = "CN=quorumd"
	b.look()
	const want = "192.0.2.1:2379 (subject CN=quorumd) expired on 2026-11-21 18:30 UTC"
	if got := textOf(b.result, CertificateInvalid); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOfManyCertificatesOnlyAFewAreNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.etcd.Certificates.All = nil
	for range 6 {
		b.etcd.Certificates.All = append(b.etcd.Certificates.All, certificatesWith(-day).All[1])
	}
	b.look()
	const one = "192.0.2.1:2379 expired on 2026-11-21 18:30 UTC; "
	if got := textOf(b.result, CertificateInvalid); got != one+one+one+"and 3 more" {
		t.Errorf("got %q", got)
	}
}
