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
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Change a running cluster to another authority, in three steps",
		Long: "Change a running cluster to another authority: the hosts come to trust both, get certificates of the\n" +
			"new one, and cease to trust the old one. Before each step every client and peer port of every member\n" +
			"is tried with a certificate of each authority, and a step that would cut a host off is refused.\n" +
			"It runs on your machine, and it may be left and taken up again at any time.",
		Args: onlySubcommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(a.pkiRotateBeginCommand(), a.pkiRotateNextCommand(), a.pkiRotateStatusCommand())
	return cmd
}

// rotating are the flags of who looks at the members.
type rotating struct {
	dir            *string
	peers, without []string
}

func rotatingFlags(cmd *cobra.Command) *rotating {
	r := &rotating{dir: authorityFlag(cmd)}
	cmd.Flags().StringSliceVar(&r.peers, "peers", nil,
		"`HOST:PORT` of peer ports to ask for the members, if not 2380 of the hosts")
	cmd.Flags().StringSliceVar(&r.without, "without", nil, "`hosts` that need not be seen, as one that has no etcd now")
	completesBy(cmd, "without", completeWithout(r.dir))
	return r
}

func (a *app) pkiRotateBeginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "begin",
		Short: "Make the new authority beside the old one",
		Args:  cobra.NoArgs,
	}
	dir := authorityFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		now := time.Now()
		authority, done, err := pki.OpenToChange(*dir, now)
		if err != nil {
			return uncertified("begin with another authority", err)
		}
		defer done()
		if err := authority.Begin(now); err != nil {
			return uncertified("begin with another authority", err)
		}
		s, err := authority.Status(nil, nil)
		if err != nil {
			return uncertified("look at the authority", err)
		}
		s.Missing = nil // nobody has looked
		return a.emit(s, func(p *page) { writeRotation(p, s) })
	}
	return cmd
}

func (a *app) pkiRotateNextCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "next",
		Short: "Look at every member, and take the next step if nothing is missing",
		Long: "Look at every member, and take the next step if nothing is missing. Otherwise it says what is,\n" +
			"changes nothing, and exits with 78.",
		Args: cobra.NoArgs,
	}
	r := rotatingFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		now := time.Now()
		authority, done, err := pki.OpenToChange(*r.dir, now)
		if err != nil {
			return uncertified("take the next step", err)
		}
		defer done()
		ports, err := authority.Look(cmd.Context(), r.peers, now)
		if err != nil {
			return uncertified("take the next step", err)
		}
		s, err := authority.Next(ports, r.without, now)
		if err != nil {
			return uncertified("take the next step", err)
		}
		s.Missing = nil // it is what the step that begins now is for
		return a.emit(s, func(p *page) { writeRotation(p, s) })
	}
	return cmd
}

func (a *app) pkiRotateStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what every member shows and whom it trusts, and what is missing for the next step",
		Args:  cobra.NoArgs,
	}
	r := rotatingFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		now := time.Now()
		authority, err := pki.Open(*r.dir, now)
		if err != nil {
			return uncertified("look at the members", err)
		}
		ports, err := authority.Look(cmd.Context(), r.peers, now)
		if err != nil {
			return uncertified("look at the members", err)
		}
		s, err := authority.Status(ports, r.without)
		if err != nil {
			return uncertified("look at the members", err)
		}
		return a.emit(s, func(p *page) {
			writePorts(p, s.Ports)
			writeRotation(p, s)
		})
	}
	return cmd
}

func writePorts(p *page, ports []pki.Port) {
	t := table{head: []string{"HOST", "PORT", "AT", "SHOWS", "OLD ONE", "NEW ONE", "WHY"}}
	for _, port := range ports {
		t.add(cells(port.Host, port.For, strings.TrimPrefix(port.URL, "https://"), cmp.Or(port.Shows, "-"),
			string(port.Old), string(port.New), port.Why)...)
	}
	p.table(t)
}

// writeRotation says which step it is and what a person does for it.
func writeRotation(p *page, s pki.Rotation) {
	switch s.Step {
	case 0:
		if s.New != "" {
			p.line("done: the cluster is with the %s", s.New)
			writeRetired(p, s)
			return
		}
		p.line("no change to another authority is under way")
		p.line("→ quorumctl pki rotate begin")
		return
	case 1:
		p.line("step 1 of 3: all hosts come to trust both authorities")
	case 2:
		p.line("step 2 of 3: all hosts get certificates of the new authority")
	default:
		p.line("step 3 of 3: all hosts cease to trust the old authority")
	}
	for _, what := range s.Missing {
		p.line("  %s", what)
	}
	if s.Step == 2 {
		for _, b := range s.Bundles {
			p.line("  %s", b)
		}
		p.line("→ carry each host's newest bundle there, and there: quorumctl pki install FILE")
	} else {
		if s.Step == 1 {
			writeFingerprint(p, s.Old, s.OldFingerprint)
		}
		writeFingerprint(p, s.New, s.NewFingerprint)
		p.line("→ carry %s to every host, and there: quorumctl pki trust %s", s.Trust, filepath.Base(s.Trust))
		p.line("→ on one host, when all have it: quorumctl rollout start restart --reason 'another authority'")
	}
	p.line("→ quorumctl pki rotate next")
}

// writeRetired says who may trust the old authority still: all that is known is what was seen.
func writeRetired(p *page, s pki.Rotation) {
	const kept = "  the old authority's files are kept in retired/"
	switch {
	case len(s.Behind) > 0:
		p.line(kept)
		for _, what := range s.Behind {
			p.line("  %s", what)
		}
	default:
		p.line(kept + ", and no member that was seen trusts them")
	}
	if len(s.Unseen) > 0 {
		p.line("  not seen: %s: run quorumctl pki status there", strings.Join(s.Unseen, ", "))
	}
}

// writeFingerprint shows by what an authority is told from any other of the same name.
func writeFingerprint(p *page, authority, fingerprint string) {
	p.line("  %s has the SHA-256 fingerprint", authority)
	p.raw("    " + fingerprint) // whole, for whoever compares it
}

func (a *app) pkiTrustCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "trust FILE",
		Short: "Put the file of those authorities in place that this host shall trust",
		Long: "Put the file of authorities that \"rotate\" has named in the place of this host's.\n" +
			"It is refused where this host's own certificates are of none of them, and where the file belongs to\n" +
			"another user than root, you, or who called sudo. Compare the fingerprints with those of \"rotate\".\n" +
			"quorumd takes it up by itself, etcd as it starts.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := pki.Trust(args[0], dir, time.Now())
			if err != nil {
				return uncertified("trust "+args[0], err)
			}
			return a.emit(t, func(p *page) { writeTrusted(p, t) })
		},
	}
	cmd.Flags().StringVar(&dir, "dir", hostTLS, "`directory` of the host's certificates")
	return cmd
}

func writeTrusted(p *page, t pki.Trusted) {
	what := "nothing changes"
	switch {
	case len(t.Added) > 0 && len(t.Dropped) > 0:
		what = fmt.Sprintf("%s, and no more %s", strings.Join(t.Added, ", "), strings.Join(t.Dropped, ", "))
	case len(t.Added) > 0:
		what = "also the " + strings.Join(t.Added, ", ")
	case len(t.Dropped) > 0:
		what = "no more the " + strings.Join(t.Dropped, ", ")
	}
	p.line("%s: this host trusts %d; %s", t.Dir, len(t.Authorities), what)
	for i, name := range t.Authorities {
		writeFingerprint(p, name, t.Fingerprints[i])
	}
	p.line("→ quorumctl rollout start restart --reason 'another authority', on one host, when all have it")
}
