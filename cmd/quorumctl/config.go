// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/fileaccess"
	"github.com/quorumd/quorumd/cmd/quorumctl/setup"
)

// defaultConfig is where the package puts the configuration.
const defaultConfig = "/etc/quorumd/quorumd.yaml"

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		GroupID: groupService,
		Short:   "Check the configuration, or print the commented default",
		Args:    onlySubcommands,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(a.configCheckCommand(), a.configDefaultCommand())
	return cmd
}

func (a *app) configCheckCommand() *cobra.Command {
	var elsewhere bool
	var as string
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report every mistake in a configuration file",
		Long: "Report every mistake in a configuration file (default " + defaultConfig + ") and in the\n" +
			"certificates that it names. Also report what this host lacks: etcd's program, its unit, the unit's\n" +
			"user, or an interface with the configured address. Exits with 78 on any mistake. Does not contact\n" +
			"quorumd. As root, it checks the files as the user that runs the service, and those of etcd.tls as\n" +
			"etcd's user.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := defaultConfig
			if len(args) > 0 {
				file = args[0]
			}
			c, err := config.Load(file)
			doc := verdictOnConfig{File: file, Warnings: orEmpty(c.Warnings)}
			if err == nil && !elsewhere {
				err = doc.look(cmd.Context(), c, as)
				err = withMissing(err, setup.Missing(cmd.Context(), file, c))
			}
			if err != nil {
				return misconfigured(file, doc.As, err)
			}
			if !elsewhere {
				doc.Warnings = slices.Concat(doc.Warnings, warnings(notAtBoot(cmd.Context(), c), setup.NoDrill(c)))
			}
			return a.emit(doc, func(p *page) { writeConfigVerdict(p, doc) })
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "look at the files with the eyes of this `user`, not of the service's")
	cmd.Flags().BoolVar(&elsewhere, "elsewhere", false,
		"it is another host's file: do not look at the certificates it names")
	return cmd
}

// warnings returns those texts that say something.
func warnings(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// withMissing adds what is missing on this host to the mistakes of a file. Another failure stays as it is.
func withMissing(err error, missing config.Errors) error {
	problems, ok := errors.AsType[config.Errors](err)
	if err != nil && !ok || len(missing) == 0 {
		return err
	}
	return slices.Concat(problems, missing)
}

// verdictOnConfig is the document of config check.
type verdictOnConfig struct {
	File     string   `json:"file"`
	As       string   `json:"as,omitempty"` // with whose eyes the files were looked at
	Warnings []string `json:"warnings"`
}

// look looks at the files that the configuration names: with the eyes of the user that runs the service, where root
// asks and a service reads the file, and else with those of whoever asks.
func (v *verdictOnConfig) look(ctx context.Context, c config.Config, as string) error {
	me, root := fileaccess.Me(), os.Geteuid() == 0
	user := as
	if user == "" {
		user = fileaccess.ServiceUser(ctx, v.File)
	}
	if user != "" {
		v.As = me
	}
	var problems config.Errors
	var err error
	switch {
	case user == "" || user == me:
		problems, err = asProblems(c.CheckFiles())
	case root:
		v.As = user
		problems, err = fileaccess.Look(ctx, v.File, user)
	case as != "":
		return &failure{
			code: exitPermission, message: "cannot look as " + as + ": not permitted",
			hint: "run it as root",
		}
	default:
		problems, err = asProblems(c.CheckFiles())
		v.Warnings = append(v.Warnings, "looked at as "+me+", but the service runs as "+user+
			": run this as root to see what that user can read")
	}
	if errors.Is(err, fileaccess.ErrNoUser) && as == "" {
		v.As = me
		v.Warnings = append(v.Warnings, "there is no user "+user+" to run the service: looked at as "+me)
		problems, err = asProblems(c.CheckFiles())
	}
	if err != nil {
		return err
	}
	ofEtcd, err := v.lookAsEtcd(ctx, c)
	if err != nil {
		return err
	}
	problems = append(problems, ofEtcd...)
	problems = append(problems, v.lookAtListeners(ctx, c)...)
	if as == "" && user != "" {
		v.Warnings = append(v.Warnings, fileaccess.Hidden(c)...)
	}
	if problems = append(problems, fileaccess.OpenKey(c, fileaccess.KeyOwner(c, user, me))...); len(problems) > 0 {
		return problems
	}
	return nil
}

// lookAsEtcd looks at the files of etcd.tls with the eyes of the user that runs etcd's unit, where root asks, and with
// its own where there is no such user, or another asks who may read them. The files of a plain process are looked at
// with the others.
func (v *verdictOnConfig) lookAsEtcd(ctx context.Context, c config.Config) (config.Errors, error) {
	if c.Etcd.TLS == nil || c.Etcd.Runner != config.RunnerSystemd {
		return nil, nil
	}
	user := fileaccess.EtcdUser(ctx, c.Etcd.Unit)
	if os.Geteuid() != 0 {
		v.Warnings = append(v.Warnings, "etcd.tls: run this as root to see whether user "+user+" can read its files")
		if !mayRead(c.Etcd.TLS) {
			return nil, nil
		}
		return asProblems(c.CheckEtcdFiles())
	}
	problems, err := fileaccess.LookEtcd(ctx, c, user)
	if errors.Is(err, fileaccess.ErrNoUser) {
		v.Warnings = append(v.Warnings, "etcd.tls: there is no user "+user+" to read its files: install etcd")
		return asProblems(c.CheckEtcdFiles())
	}
	return problems, err
}

// mayRead tells whether none of the files is closed to who asks.
func mayRead(t *config.EtcdTLS) bool {
	return !slices.ContainsFunc([]string{t.CA, t.Cert, t.Key, t.PeerCA, t.PeerCert, t.PeerKey}, func(path string) bool {
		return errors.Is(unix.Access(path, unix.R_OK), fs.ErrPermission)
	})
}

// lookAtListeners looks whether the etcd that runs here leaves the forwarder its address: one that somebody has set
// up by hand may listen on the loopback, too, and of the two the one that starts first keeps the other down.
func (v *verdictOnConfig) lookAtListeners(ctx context.Context, c config.Config) config.Errors {
	if c.Proxy.Listen == "" || c.Etcd.Runner != config.RunnerSystemd {
		return nil
	}
	urls, err := setup.Listens(ctx, c.Etcd.Unit)
	if err != nil {
		v.Warnings = append(v.Warnings, "proxy.listen: "+c.Etcd.Unit+" runs, and where it listens cannot be told: "+
			err.Error())
	}
	url := c.ProxyOn(urls)
	if url == "" {
		return nil
	}
	return config.Errors{{
		Key: "proxy.listen",
		Message: "proxy.listen (" + c.Proxy.Listen + ") and the etcd that runs here (" + c.Etcd.Unit + ", " + url +
			") listen on the same address and port; give proxy.listen another port",
	}}
}

func asProblems(err error) (config.Errors, error) {
	if problems, ok := errors.AsType[config.Errors](err); ok {
		return problems, nil
	}
	return nil, err
}

func writeConfigVerdict(p *page, v verdictOnConfig) {
	p.raw(display.Clean(v.File) + ": " + p.paint("OK", good)) // one line however long the path is: scripts look for it
	if v.As != "" {
		p.line("  looked at as %s", v.As)
	}
	for _, text := range v.Warnings {
		p.line("  %s %s", word{"warning:", warn}, text)
	}
}

// misconfigured is the failure of a file that cannot be read, or that has mistakes: one in a line. as is who has looked
// at what the file names, if that is to be told.
func misconfigured(file, as string, err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := &failure{
		code: exitConfig, message: err.Error(),
		hint: "quorumctl config default shows every key with what it means",
	}
	if errors.Is(err, fs.ErrPermission) {
		f.code, f.hint = exitPermission, "run it as root, or as the user that runs quorumd"
	}
	if problems, ok := errors.AsType[config.Errors](err); ok {
		f.message = "cannot use " + file + ": " + display.Count(len(problems), "mistake", "mistakes")
		f.details = strings.Split(err.Error(), "\n")
		if as != "" {
			f.details = append(f.details, "looked at as "+as)
		}
	} else if !strings.HasPrefix(f.message, "cannot ") {
		f.message = "cannot use " + file + ": " + f.message
	}
	return f
}

func (a *app) configDefaultCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "default",
		Short: "Print the commented default configuration",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if _, err := a.out.Write(config.Default()); err != nil {
				return cannot("write the output", err)
			}
			return nil
		},
	}
}

func orEmpty(list []string) []string {
	return append([]string{}, list...)
}
