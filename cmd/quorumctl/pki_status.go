// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
)

func (a *app) pkiStatusCommand() *cobra.Command {
	warnDays, criticalDays := 30, 7
	cmd := a.prints(&cobra.Command{
		Use:   "status [DIR]",
		Short: "Show certificates and when they expire",
		Long: "Show the certificates in DIR: the CAs and the newest ones of each host, or those of one host. DIR " +
			"defaults\n" +
			"to " + defaultPKI + " if it exists, otherwise to " + hostTLS + ". The exit status follows the\n" +
			"Nagios convention for the certificate that expires first: 0 OK, 1 WARNING, 2 CRITICAL or expired,\n" +
			"3 UNKNOWN.",
		Example: examples("quorumctl pki status", "quorumctl pki status /etc/quorumd/tls --warning 60"),
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := hostTLS
			if _, err := os.Stat(defaultPKI); err == nil {
				dir = defaultPKI
			}
			if len(args) > 0 {
				dir = filepath.Clean(args[0])
			}
			if criticalDays > warnDays {
				return usage("--warning must not be less than --critical",
					"cannot check the certificates: --critical %d is more than --warning %d", criticalDays, warnDays)
			}
			now := time.Now()
			certs, err := pki.Inspect(dir, now)
			if err != nil {
				f := pkiFailure("read the certificates in "+dir, err)
				f.code = int(gradeUnknown)
				return f
			}
			worst := gradeOK
			for _, c := range certs {
				worst = max(worst, gradeOf(c, now, warnDays, criticalDays))
			}
			err = a.emit(certs, func(p *page) { writeCertificates(p, certs, now, warnDays, criticalDays) })
			if err != nil {
				return err
			}
			if worst != gradeOK {
				return &failure{code: int(worst)} // the printed table already shows the cause
			}
			return nil
		},
	}, printed{name: "certificates", of: []pki.Certificate{}})
	cmd.Flags().IntVar(&warnDays, "warning", warnDays, "`days` before expiry for WARNING")
	cmd.Flags().IntVar(&criticalDays, "critical", criticalDays, "`days` before expiry for CRITICAL")
	return cmd
}

func gradeOf(c pki.Certificate, now time.Time, warnDays, criticalDays int) grade {
	switch {
	case c.Days < criticalDays || now.Before(c.From):
		return gradeCritical
	case c.Days < warnDays:
		return gradeWarning
	}
	return gradeOK
}

func writeCertificates(p *page, certs []pki.Certificate, now time.Time, warnDays, criticalDays int) {
	t := table{head: []string{"CERTIFICATE", "FROM", "UNTIL", "LEFT", "VALID FOR"}}
	for _, c := range certs {
		tone := [...]word{gradeOK: {"", plain}, gradeWarning: {"", warn}, gradeCritical: {"", bad}}[gradeOf(c, now,
			warnDays, criticalDays)].Tone
		left := fmt.Sprintf("%d d", c.Days)
		switch {
		case c.Days < 0:
			left = "expired"
		case now.Before(c.From):
			left = "not yet valid"
		}
		t.add(word{Text: c.What}, word{Text: date(c.From)}, word{Text: date(c.Until)}, word{left, tone},
			word{Text: strings.Join(c.Names, " ")})
	}
	p.table(t)
	if slices.ContainsFunc(certs, func(c pki.Certificate) bool { return c.Shared }) {
		p.line("etcd's peer port trusts the client CA: every client's certificate opens it")
		p.line("→ on the machine that holds the CA's key: quorumctl pki rotate begin --peers-only")
	}
}

// date returns the day in UTC.
func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }
