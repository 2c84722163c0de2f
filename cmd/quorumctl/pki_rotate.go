// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
)

func (a *app) pkiRotateCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "rotate",
		Short: "Move a running cluster to new CAs, in three steps",
		Long: "Move a running cluster to new CAs. The hosts first trust both CAs, then get certificates from the\n" +
			"new CA, then stop trusting the old one. Before each step, quorumctl uses a certificate from each CA\n" +
			"to connect to every client and peer port of every member, and refuses a step that would cut a host\n" +
			"off. Run the commands on your machine. You can pause the rotation at any point, and undo it until\n" +
			"the last step has ended.",
		Example: examples("quorumctl pki rotate begin", "quorumctl pki rotate status", "quorumctl pki rotate next"),
	}, a.pkiRotateBeginCommand(), a.pkiRotateNextCommand(), a.pkiRotateUndoCommand(),
		a.pkiRotateStatusCommand())
}

// rotateFlags holds the flags of commands that connect to the members.
type rotateFlags struct {
	dir            *string
	peers, without []string
}

func addRotateFlags(cmd *cobra.Command) *rotateFlags {
	r := &rotateFlags{dir: caDirFlag(cmd)}
	cmd.Flags().StringSliceVar(&r.peers, "peers", nil,
		"`HOST:PORT` of peer ports to query (default: port 2380 of the hosts)")
	cmd.Flags().StringSliceVar(&r.without, "without", nil, "`hosts` to skip, such as one that runs no etcd")
	completeWith(cmd, "without", completeCertifiedList(r.dir))
	return r
}

func (a *app) pkiRotateBeginCommand() *cobra.Command {
	cmd := a.prints(&cobra.Command{
		Use:   "begin",
		Short: "Begin a rotation: create the new CAs",
		Long: "Create the new CAs next to the old ones. With --peers-only, create a new CA for etcd's peers only.\n" +
			"Use it if both ports of etcd trust the same CA, because any client's certificate then opens the peer\n" +
			"port.",
		Example: examples("quorumctl pki rotate begin", "quorumctl pki rotate begin --peers-only"),
		Args:    cobra.NoArgs,
	}, printed{name: "rotation", of: pki.Rotation{}})
	dir := caDirFlag(cmd)
	var peersOnly bool
	cmd.Flags().BoolVar(&peersOnly, "peers-only", false, "change only the CA of etcd's peers")
	permit := permitFlag(cmd)
	cmd.Flags().Lookup("permit").Usage = "address `ranges` and domains for the new CAs (default: unchanged)"
	cmd.RunE = func(*cobra.Command, []string) error {
		return changeCAs(*dir, "begin the rotation", func(cas *pki.Directory, now time.Time) error {
			if err := cas.Begin(peersOnly, now, *permit...); err != nil {
				return err
			}
			s, err := cas.Status(nil, nil)
			if err != nil {
				return pkiFailure("read the CAs", err)
			}
			s.Missing = nil // no member was checked, so what is missing is unknown
			return a.emit(s, func(p *page) { writeRotation(p, s) })
		})
	}
	return cmd
}

func (a *app) pkiRotateNextCommand() *cobra.Command {
	cmd := a.prints(&cobra.Command{
		Use:   "next",
		Short: "Check every member and take the next step",
		Long: "Check every member and take the next step. If the current step is not complete, list what is " +
			"missing,\nchange nothing, and exit 78.",
		Example: examples("quorumctl pki rotate next", "quorumctl pki rotate next --without n4"),
		Args:    cobra.NoArgs,
	}, printed{name: "rotation", of: pki.Rotation{}})
	r := addRotateFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return changeCAs(*r.dir, "take the next step", func(cas *pki.Directory, now time.Time) error {
			ports, err := cas.CheckTrust(cmd.Context(), r.peers, now)
			if err != nil {
				return err
			}
			s, err := cas.Next(ports, r.without, now)
			if err != nil {
				return err
			}
			s.Missing = nil // the step or its bundles are new, so no host can have completed it
			return a.emit(s, func(p *page) { writeRotation(p, s) })
		})
	}
	return cmd
}

func (a *app) pkiRotateUndoCommand() *cobra.Command {
	cmd := a.prints(&cobra.Command{
		Use:   "undo",
		Short: "Undo a rotation: return to the previous CAs",
		Long: "Reverse a rotation, back to the CAs that were in use when it began. Run \"next\" for each remaining\n" +
			"step. A second undo reverses the direction again.",
		Example: examples("quorumctl pki rotate undo", "quorumctl pki rotate undo && quorumctl pki rotate next"),
		Args:    cobra.NoArgs,
	}, printed{name: "rotation", of: pki.Rotation{}})
	dir := caDirFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		return changeCAs(*dir, "undo the rotation", func(cas *pki.Directory, now time.Time) error {
			s, err := cas.Undo(now)
			if err != nil {
				return err
			}
			return a.emit(s, func(p *page) { writeRotation(p, s) })
		})
	}
	return cmd
}

func (a *app) pkiRotateStatusCommand() *cobra.Command {
	cmd := a.prints(&cobra.Command{
		Use:   "status",
		Short: "Show which CA each member uses and trusts",
		Long: "Connect to every member and show which CA signed its certificate, which CAs it trusts, and what the\n" +
			"next step still needs.",
		Example: examples("quorumctl pki rotate status", "quorumctl pki rotate status --peers 10.0.0.1:2380"),
		Args:    cobra.NoArgs,
	}, printed{name: "rotation", of: pki.Rotation{}})
	r := addRotateFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		now := time.Now()
		cas, err := pki.Open(*r.dir, now)
		if err != nil {
			return pkiFailure("check the members", err)
		}
		ports, err := cas.CheckTrust(cmd.Context(), r.peers, now)
		if err != nil {
			return pkiFailure("check the members", err)
		}
		s, err := cas.Status(ports, r.without)
		if err != nil {
			return pkiFailure("check the members", err)
		}
		return a.emit(s, func(p *page) {
			writePorts(p, s.Ports)
			writeRotation(p, s)
		})
	}
	return cmd
}

func writePorts(p *page, ports []pki.Port) {
	t := table{head: []string{"HOST", "PORT", "ADDRESS", "CERTIFICATE", "OLD CA", "NEW CA", "ERROR"}}
	for _, port := range ports {
		t.add(cells(port.Host, port.For, strings.TrimPrefix(port.URL, "https://"), cmp.Or(port.Shows, "-"),
			string(port.Old), string(port.New), port.Why)...)
	}
	p.table(t)
}

// writeRotation shows the current step and its commands.
func writeRotation(p *page, s pki.Rotation) {
	if s.Step == 0 {
		writeNoRotation(p, s)
		return
	}
	if s.Back {
		p.line(`this rotation is being undone: below, "new CA" means the previous CA`)
	}
	what := []string{
		"all hosts trust both CAs", "all hosts get certificates issued by the new CA",
		"all hosts stop trusting the old CA",
	}[s.Step-1]
	p.line("step %d of 3: %s", s.Step, what)
	for _, what := range s.Missing {
		p.line("  %s", what)
	}
	if s.Step == 2 {
		for _, b := range s.Bundles {
			p.line("  %s", b)
		}
		p.line("→ copy its newest bundle to each host, then run there: quorumctl pki install FILE")
	} else {
		for _, c := range s.CAs {
			if s.Step == 1 {
				writeFingerprint(p, "old, for "+c.For+": "+c.Old, c.OldFingerprint)
			}
			writeFingerprint(p, "new, for "+c.For+": "+c.New, c.NewFingerprint)
		}
		p.line("→ copy %s to every host, then run there: quorumctl pki trust %s", s.Trust, filepath.Base(s.Trust))
		p.line("→ then, on one host: quorumctl rollout start restart --reason 'new CA'")
	}
	p.line("→ quorumctl pki rotate next")
}

// writeNoRotation shows that a rotation has ended, or that none is in progress.
func writeNoRotation(p *page, s pki.Rotation) {
	if len(s.CAs) == 0 {
		p.line("no CA rotation is in progress")
		p.line("→ quorumctl pki rotate begin")
		return
	}
	if s.Back {
		p.line("undone: the cluster uses the previous CAs")
	}
	for _, c := range s.CAs {
		p.line("done: the %s use the %s", c.For, c.New)
	}
	writeRetired(p, s)
}

// writeRetired shows where the old CA is kept, and lists the hosts that may still trust it.
func writeRetired(p *page, s pki.Rotation) {
	const kept = "  the old CA certificates are kept in retired/, and their keys are deleted"
	p.line(kept)
	if len(s.Behind) == 0 {
		p.line("  no member that was checked trusts the old CA")
	}
	for _, what := range s.Behind {
		p.line("  %s", what)
	}
	if len(s.Unseen) > 0 {
		p.line("  not checked: %s: run quorumctl pki status there", strings.Join(s.Unseen, ", "))
	}
}

// writeFingerprint shows the fingerprint of a CA, because two CAs may have the same name.
func writeFingerprint(p *page, ca, fingerprint string) {
	p.line("  %s: SHA-256 fingerprint", ca)
	p.raw("    " + fingerprint) // not wrapped, because operators compare it
}

func (a *app) pkiTrustCommand() *cobra.Command {
	var dir string
	cmd := a.prints(&cobra.Command{
		Use:   "trust FILE",
		Short: "Install the CAs that this host trusts",
		Long: "Install the CAs that this host trusts, from the file that \"pki rotate\" names. One of the CAs must\n" +
			"have signed this host's certificates. The file must belong to root, to you, or to the user who\n" +
			"called sudo. Compare the fingerprints with the output of \"pki rotate\". quorumd reloads the CAs by\n" +
			"itself; etcd reads them when it starts.",
		Example: examples("quorumctl pki trust trust-both.tar", "quorumctl pki trust trust-new.tar"),
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := pki.Trust(args[0], dir, time.Now())
			if err != nil {
				return pkiFailure("trust "+args[0], err)
			}
			return a.emit(t, func(p *page) { writeTrusted(p, t) })
		},
	}, printed{name: "trusted", of: pki.Trusted{}})
	cmd.Flags().StringVar(&dir, "dir", hostTLS, "`directory` of the host's certificates")
	return cmd
}

func writeTrusted(p *page, t pki.Trusted) {
	separate := false
	for _, f := range t.Files {
		what := "unchanged"
		switch {
		case len(f.Added) > 0 && len(f.Dropped) > 0:
			what = fmt.Sprintf("%s added, %s dropped", strings.Join(f.Added, ", "), strings.Join(f.Dropped, ", "))
		case len(f.Added) > 0:
			what = strings.Join(f.Added, ", ") + " added"
		case len(f.Dropped) > 0:
			what = strings.Join(f.Dropped, ", ") + " dropped"
		}
		p.line("%s: CAs that this host trusts: %d; %s", filepath.Join(t.Dir, f.File), len(f.CAs), what)
		for i, name := range f.CAs {
			writeFingerprint(p, name, f.Fingerprints[i])
		}
		separate = separate || f.New
	}
	if separate {
		p.line("→ etcd does not read the new CA file yet: see 'A separate CA for peers' in first-cluster.md")
	}
	p.line("→ when every host trusts these CAs, on one host: quorumctl rollout start restart --reason 'new CA'")
}
