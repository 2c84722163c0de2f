// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/fileaccess"
	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
)

const (
	// defaultPKI is the directory of the CAs on the operator's machine. hostTLS contains a host's own certificates.
	defaultPKI = "./quorumd-pki"
	hostTLS    = "/etc/quorumd/tls"
)

func (a *app) pkiCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:     "pki",
		GroupID: groupService,
		Short:   "Issue and renew the certificates of a cluster",
		Long: "Issue and renew the certificates of a cluster. A directory on your machine holds two CAs, one for\n" +
			"etcd's clients and one for its peers. You copy one bundle to each host. Only \"rotate\" uses the\n" +
			"network: it connects to etcd. Two commands overwrite files of a host: \"install\" replaces an older\n" +
			"bundle, and \"trust\" replaces the CAs that the host trusts.",
		Example: examples("quorumctl pki init", "quorumctl pki host n1 10.0.0.1", "quorumctl pki status"),
	}, a.pkiInitCommand(), a.pkiHostCommand(), a.pkiRenewCommand(), a.pkiStatusCommand(),
		a.pkiInstallCommand(), a.pkiTrustCommand(), a.pkiRotateCommand())
}

func caDirFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("dir", defaultPKI, "`directory` of the CAs")
}

func (a *app) pkiInitCommand() *cobra.Command {
	cmd := a.prints(&cobra.Command{
		Use:     "init",
		Short:   "Create the CAs, once per cluster",
		Example: examples("quorumctl pki init", "quorumctl pki init --permit 10.0.0.0/24,example.com"),
		Args:    cobra.NoArgs,
	}, printed{name: "ca", of: caDocument{}})
	dir, permit := caDirFlag(cmd), permitFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := pki.Create(*dir, time.Now(), *permit...); err != nil {
			return pkiFailure("create the CAs", err)
		}
		made, err := pki.Open(*dir, time.Now())
		if err != nil {
			return pkiFailure("read the CAs", err)
		}
		return a.emit(caDocument{*dir, made.CAs()}, func(p *page) {
			p.line("%s: a CA for clients and one for peers, valid for %d years", *dir, pki.CAYears)
			p.line("  their keys grant full control of the cluster: keep them off the hosts, and back them up")
			writeCAs(p, made.CAs())
			p.line("→ quorumctl pki host NAME ADDRESS..., for each host")
		})
	}
	return cmd
}

// caDocument is the document that 'quorumctl pki init' prints.
type caDocument struct {
	Dir string   `json:"dir"`
	CAs []pki.CA `json:"cas"`
}

// writeCAs shows the fingerprints of the CAs.
func writeCAs(p *page, cas []pki.CA) {
	for _, ca := range cas {
		writeFingerprint(p, ca.Name, ca.Fingerprint)
	}
}

// permitFlag declares the flag for the names and addresses that new CAs may sign for.
func permitFlag(cmd *cobra.Command) *[]string {
	return cmd.Flags().StringSlice("permit", nil,
		"address `ranges` and domains that the CAs can sign for (default all)")
}

func daysFlag(cmd *cobra.Command) *int {
	return cmd.Flags().Int("days", pki.LeafDays, "validity of the certificates in `days`")
}

// bundleList is the document printed by the commands that create bundles.
type bundleList struct {
	Bundles []newBundle `json:"bundles"`
}

// newBundle describes a bundle that was just created.
type newBundle struct {
	Host string `json:"host"`
	File string `json:"file"`
	Days int    `json:"days"` // validity of the certificates
}

func (a *app) pkiHostCommand() *cobra.Command {
	cmd := a.prints(&cobra.Command{
		Use:   "host NAME ADDRESS...",
		Short: "Create a host's certificates as one bundle",
		Long: "Create the certificates of a host for etcd and quorumd, valid for its name, its addresses and\n" +
			"localhost. The bundle holds the only copy of the host's keys: copy it over a secure channel (scp), and\n" +
			"remove it after it is installed.",
		Example: examples("quorumctl pki host n1 10.0.0.1", "quorumctl pki host n2 10.0.0.2 n2.example.com --days 90"),
		Args:    cobra.MinimumNArgs(1),
	}, printed{name: "bundles", of: bundleList{}})
	dir := caDirFlag(cmd)
	days := daysFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return changeCAs(*dir, "create the certificates", func(cas *pki.Directory, now time.Time) error {
			cas.Days = *days
			file, err := cas.Host(args[0], args[1:], now)
			if err != nil {
				return err
			}
			return a.emitBundles(bundleList{[]newBundle{{args[0], file, *days}}})
		})
	}
	return cmd
}

func (a *app) pkiRenewCommand() *cobra.Command {
	var all bool
	cmd := a.prints(&cobra.Command{
		Use:   "renew NAME [ADDRESS...] | renew --all",
		Short: "Renew a host's certificates, with new keys",
		Long: "Create new certificates with new keys for the same names, or for the given addresses, as a new\n" +
			"bundle. The current ones remain valid until they expire. When the new ones are installed, etcd\n" +
			"and quorumd load them without a restart.",
		Example: examples("quorumctl pki renew n1", "quorumctl pki renew --all"),
	}, printed{name: "bundles", of: bundleList{}})
	dir := caDirFlag(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "renew the certificates of every host")
	days := daysFlag(cmd)
	cmd.ValidArgsFunction = completeCertified(dir)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if all == (len(args) > 0) {
			return usage("quorumctl pki renew --help",
				"cannot renew certificates: name a host or use --all, but not both")
		}
		return changeCAs(*dir, "renew certificates", func(cas *pki.Directory, now time.Time) (err error) {
			cas.Days = *days
			var names, addresses []string
			if all {
				if names, err = cas.Hosts(); err != nil {
					return err
				}
			} else {
				names, addresses = args[:1], args[1:]
			}
			var made bundleList
			for _, name := range names {
				file, err := cas.Renew(name, addresses, now)
				if err != nil {
					return errors.Join(a.emitBundles(made), pkiFailure("renew the certificates of "+name, err))
				}
				made.Bundles = append(made.Bundles, newBundle{name, file, *days})
			}
			return a.emitBundles(made)
		})
	}
	return cmd
}

func (a *app) emitBundles(made bundleList) error {
	made.Bundles = append([]newBundle{}, made.Bundles...)
	return a.emit(made, func(p *page) {
		for _, b := range made.Bundles {
			p.line("%s: certificates and keys of %s, valid for %d days", b.File, b.Host, b.Days)
		}
		switch len(made.Bundles) {
		case 0:
		case 1:
			host, file := made.Bundles[0].Host, filepath.Base(made.Bundles[0].File)
			p.line("→ copy it to %s; on a new host: quorumctl init --tls %s --hosts NAME=ADDRESS,...; "+
				"on an existing host: quorumctl pki install %s", host, file, file)
		default:
			p.line("→ copy each to its host, then run there: quorumctl pki install FILE")
		}
	})
}

func (a *app) pkiInstallCommand() *cobra.Command {
	o := pki.Place{}
	var etcd, quorumd string
	var anyAddress bool
	cmd := a.prints(&cobra.Command{
		Use:   "install FILE",
		Short: "Install a certificate bundle on its host",
		Long: "Check a bundle and install its files in " + hostTLS + ". root owns them; the groups of etcd and\n" +
			"quorumd can each read their own key. A newer bundle of the same host replaces an older one, and is\n" +
			"loaded without a restart. The bundle file must belong to root, to you, or to the user who called\n" +
			"sudo. Compare the fingerprints with the output of \"pki init\", or pass them with --fingerprint.",
		Example: examples("quorumctl pki install n1.tar", "quorumctl pki install /root/n1.tar --any-address"),
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var err error
			if o.Etcd, o.Quorumd, err = keyReaders(etcd, quorumd); err != nil {
				return err
			}
			if o.Addresses, err = ownAddresses(anyAddress); err != nil {
				return cannot("read this host's addresses", err)
			}
			done, err := pki.Install(args[0], o, time.Now())
			if err != nil {
				return pkiFailure("install "+args[0], err)
			}
			return a.emit(done, func(p *page) { writeInstalled(p, done, args[0]) })
		},
	}, printed{name: "installed", of: pki.Installed{}})
	cmd.Flags().StringVar(&o.Dir, "dir", hostTLS, "`directory` for the files")
	cmd.Flags().StringVar(&etcd, "etcd-group", "etcd", "`group` that reads etcd's keys")
	cmd.Flags().StringVar(&quorumd, "quorumd-group", "quorumd", "`group` that reads quorumd's key")
	cmd.Flags().StringSliceVar(&o.Fingerprints, "fingerprint", nil,
		"SHA-256 `fingerprints` of the CAs: refuse a bundle with other CAs")
	cmd.Flags().BoolVar(&anyAddress, "any-address", false, "accept a bundle for addresses that this host does not have")
	return cmd
}

// keyReaders returns the IDs of the groups that may read the keys, or -1 if the caller is not root.
func keyReaders(etcd, quorumd string) (etcdGroup, quorumdGroup int, err error) {
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
				hint: "install quorumd's and etcd's packages first, or use --etcd-group and --quorumd-group",
			}
		}
		ids[i] = int(id)
	}
	return ids[0], ids[1], nil
}

// ownAddresses returns the addresses of this host, or none to skip the check.
func ownAddresses(skip bool) ([]netip.Addr, error) {
	if skip {
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
	what := "certificates of"
	if done.Renewed {
		what = "newer certificates of"
	}
	p.line("%s: %s %s, valid until %s", done.Dir, what, done.Host, date(done.Until))
	writeCAs(p, done.CAs)
	if done.Renewed {
		p.line("  etcd and quorumd load them at the next connection")
	}
	p.line("→ remove the bundle, which holds the keys: rm %s", file)
}

// changeCAs opens the directory of the CAs exclusively, and calls change. action names the action in the error.
func changeCAs(dir, action string, change func(cas *pki.Directory, now time.Time) error) error {
	now := time.Now()
	cas, done, err := pki.OpenToChange(dir, now)
	if err != nil {
		return pkiFailure(action, err)
	}
	defer done()
	if err := change(cas, now); err != nil {
		return pkiFailure(action, err)
	}
	return nil
}

// pkiFailure turns an error of package pki into a failure, unless it is one already.
func pkiFailure(what string, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := &failure{code: exitFault, message: fmt.Sprintf("cannot %s: %v", what, err)}
	if e, ok := errors.AsType[*pki.Error](err); ok {
		f.code, f.hint = exitConfig, e.Remedy
		if e.Argument {
			f.code = exitUsage
		}
	}
	if errors.Is(err, os.ErrPermission) {
		f.code, f.hint = exitPermission, "run it as root, or as the owner of the directory"
	}
	return f
}
