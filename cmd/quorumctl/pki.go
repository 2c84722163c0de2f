// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/fileaccess"
	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
)

const (
	// defaultPKI is where an authority lies, on the operator's machine, and hostTLS a host's own certificates.
	defaultPKI = "./quorumd-pki"
	hostTLS    = "/etc/quorumd/tls"
)

func (a *app) pkiCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pki",
		GroupID: groupService,
		Short:   "Issue and renew the certificates of a cluster",
		Long: "Issue and renew the certificates of a cluster. A directory on your machine holds two CAs, one for\n" +
			"etcd's clients and one for its peers. You copy one bundle to each host. Only \"rotate\" uses the\n" +
			"network: it connects to etcd. Only \"install\" and \"trust\" overwrite files: \"install\" replaces an\n" +
			"older bundle, \"trust\" replaces the CAs that a host trusts.",
		Args: onlySubcommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(a.pkiInitCommand(), a.pkiHostCommand(), a.pkiRenewCommand(), a.pkiStatusCommand(),
		a.pkiInstallCommand(), a.pkiTrustCommand(), a.pkiRotateCommand())
	return cmd
}

// authorityFlag says where the authority is.
func authorityFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("dir", defaultPKI, "`directory` of the authority")
}

func (a *app) pkiInitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create the CAs, once for a cluster",
		Args:  cobra.NoArgs,
	}
	dir, permit := authorityFlag(cmd), permitFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := pki.Create(*dir, time.Now(), *permit...); err != nil {
			return uncertified("create the CAs", err)
		}
		made, err := pki.Open(*dir, time.Now())
		if err != nil {
			return uncertified("read the CAs", err)
		}
		return a.emit(authority{*dir, made.CAs()}, func(p *page) {
			p.line("%s: a CA for clients and one for peers, valid for %d years", *dir, pki.AuthorityYears)
			p.line("  their keys grant full control of the cluster: keep them off the hosts, and back them up")
			writeCAs(p, made.CAs())
			p.line("→ quorumctl pki host NAME ADDRESS..., for each host")
		})
	}
	return cmd
}

// authority is the document of what makes one.
type authority struct {
	Dir string   `json:"dir"`
	CAs []pki.CA `json:"cas"`
}

// writeCAs shows CAs by what a host compares.
func writeCAs(p *page, cas []pki.CA) {
	for _, ca := range cas {
		writeFingerprint(p, ca.Name, ca.Fingerprint)
	}
}

// permitFlag names what the CAs that a command makes may sign for.
func permitFlag(cmd *cobra.Command) *[]string {
	return cmd.Flags().StringSlice("permit", nil,
		"address `ranges` and domains that the CAs can sign for (default all)")
}

// daysFlag is for how long the certificates that a command makes are good.
func daysFlag(cmd *cobra.Command) *int {
	return cmd.Flags().Int("days", pki.LeafDays, "validity of the certificates in `days`")
}

// given is the document of what makes bundles.
type given struct {
	Bundles []bundleOf `json:"bundles"`
}

// bundleOf is a bundle that was made.
type bundleOf struct {
	Host string `json:"host"`
	File string `json:"file"`
	Days int    `json:"days"` // for which its certificates are good
}

func (a *app) pkiHostCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "host NAME ADDRESS...",
		Short: "Make the certificates of a host, as one bundle to carry there",
		Long: "Make the certificates of a host for etcd and for quorumd, good for its name, its addresses and\n" +
			"localhost. The bundle holds the host's keys, which are nowhere else: carry it by a way that others\n" +
			"cannot read, and remove it when it is installed.",
		Args: cobra.MinimumNArgs(1),
	}
	dir := authorityFlag(cmd)
	days := daysFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		now := time.Now()
		authority, done, err := pki.OpenToChange(*dir, now)
		if err != nil {
			return uncertified("make certificates", err)
		}
		defer done()
		authority.Days = *days
		file, err := authority.Host(args[0], args[1:], now)
		if err != nil {
			return uncertified("make certificates", err)
		}
		return a.emitBundles(given{[]bundleOf{{args[0], file, *days}}})
	}
	return cmd
}

func (a *app) pkiRenewCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "renew NAME [ADDRESS...] | renew --all",
		Short: "Make new certificates with new keys, for the same names unless addresses are given",
		Long: "Make new certificates with new keys, as a new bundle. Those that are in use stay good until they\n" +
			"expire. Installed, they are taken up by etcd and quorumd without a restart.",
	}
	dir := authorityFlag(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "for every host")
	days := daysFlag(cmd)
	cmd.ValidArgsFunction = completeCertified(dir)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if all == (len(args) > 0) {
			return usage("quorumctl pki renew --help", "cannot renew certificates: give the name of a host, or --all")
		}
		now := time.Now()
		authority, done, err := pki.OpenToChange(*dir, now)
		if err != nil {
			return uncertified("renew certificates", err)
		}
		defer done()
		authority.Days = *days
		var names, addresses []string
		if all {
			if names, err = authority.Hosts(); err != nil {
				return uncertified("renew certificates", err)
			}
		} else {
			names, addresses = args[:1], args[1:]
		}
		var made given
		for _, name := range names {
			file, err := authority.Renew(name, addresses, now)
			if err != nil {
				return errors.Join(a.emitBundles(made), uncertified("renew the certificates of "+name, err))
			}
			made.Bundles = append(made.Bundles, bundleOf{name, file, *days})
		}
		return a.emitBundles(made)
	}
	return cmd
}

func (a *app) emitBundles(made given) error {
	made.Bundles = append([]bundleOf{}, made.Bundles...)
	return a.emit(made, func(p *page) {
		for _, b := range made.Bundles {
			p.line("%s: the certificates and keys of %s, valid for %d days", b.File, b.Host, b.Days)
		}
		if len(made.Bundles) > 0 {
			p.line("→ copy each to its host (scp), then run there: quorumctl pki install FILE")
		}
	})
}

func (a *app) pkiInstallCommand() *cobra.Command {
	o := pki.Place{}
	var etcd, quorumd string
	var anyAddress bool
	cmd := &cobra.Command{
		Use:   "install FILE",
		Short: "Put the certificates of a bundle in place on its host",
		Long: "Check a bundle and install its files in " + hostTLS + ". root owns them; the groups of etcd and\n" +
			"quorumd can each read their own key. A newer bundle of the same host replaces an older one, and is\n" +
			"loaded without a restart. The bundle file must belong to root, to you, or to the user who called\n" +
			"sudo. Compare the fingerprints with the output of \"pki init\", or pass them with --fingerprint.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var err error
			if o.Etcd, o.Quorumd, err = readers(etcd, quorumd); err != nil {
				return err
			}
			if o.Addresses, err = ownAddresses(anyAddress); err != nil {
				return cannot("look at this host's addresses", err)
			}
			done, err := pki.Install(args[0], o, time.Now())
			if err != nil {
				return uncertified("install "+args[0], err)
			}
			return a.emit(done, func(p *page) { writeInstalled(p, done, args[0]) })
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", hostTLS, "`directory` for the files")
	cmd.Flags().StringVar(&etcd, "etcd-group", "etcd", "`group` that reads etcd's keys")
	cmd.Flags().StringVar(&quorumd, "quorumd-group", "quorumd", "`group` that reads quorumd's key")
	cmd.Flags().StringSliceVar(&o.Fingerprints, "fingerprint", nil,
		"SHA-256 `fingerprints` of the CAs: refuse a bundle with another CA")
	cmd.Flags().BoolVar(&anyAddress, "any-address", false, "take a bundle that is for no address of this host")
	return cmd
}

// readers gives the numbers of the groups that read the keys. Whoever is not root installs for himself alone.
func readers(etcd, quorumd string) (etcdGroup, quorumdGroup int, err error) {
	if os.Geteuid() != 0 {
		return -1, -1, nil
	}
	var ids [2]int
	for i, name := range []string{etcd, quorumd} {
		id, ok, err := fileaccess.Group(name)
		if err != nil {
			return 0, 0, cannot("look up the group "+name, err)
		}
		if !ok {
			return 0, 0, &failure{
				code: exitConfig, message: "cannot install certificates: this host has no group " + name,
				hint: "install quorumd's and etcd's packages first; for another name: --etcd-group, --quorumd-group",
			}
		}
		ids[i] = int(id)
	}
	return ids[0], ids[1], nil
}

// ownAddresses gives the addresses of this host, or none if all will do.
func ownAddresses(anyWillDo bool) ([]netip.Addr, error) {
	if anyWillDo {
		return nil, nil
	}
	nets, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var all []netip.Addr
	for _, n := range nets {
		if prefix, err := netip.ParsePrefix(n.String()); err == nil {
			all = append(all, prefix.Addr().Unmap())
		}
	}
	return all, nil
}

func writeInstalled(p *page, done pki.Installed, file string) {
	what := "the certificates of"
	if done.Renewed {
		what = "newer certificates of"
	}
	p.line("%s: %s %s, valid until %s", done.Dir, what, done.Host, date(done.Until))
	writeCAs(p, done.CAs)
	if done.Renewed {
		p.line("  etcd and quorumd load them at the next connection")
	}
	p.line("→ rm %s: its keys are in place now", file)
}

// uncertified makes an error of package pki fit for people.
func uncertified(what string, err error) *failure {
	f := &failure{code: exitFault, message: fmt.Sprintf("cannot %s: %v", what, err)}
	if e, ok := errors.AsType[*pki.Error](err); ok {
		f.code, f.hint = exitConfig, e.Remedy
		if e.Argument {
			f.code = exitUsage
		}
	}
	if errors.Is(err, os.ErrPermission) {
		f.code, f.hint = exitPermission, "run it as root, or as the user who owns the directory"
	}
	return f
}
