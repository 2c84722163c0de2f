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

// defaultConfig is where the package installs the configuration.
const defaultConfig = "/etc/quorumd/quorumd.yaml"

func (a *app) configCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:     "config",
		GroupID: groupService,
		Short:   "Check or show the configuration",
		Example: examples("quorumctl config check", "quorumctl config show", "quorumctl config default"),
	}, a.configCheckCommand(), a.configShowCommand(), a.configDefaultCommand())
}

func (a *app) configCheckCommand() *cobra.Command {
	var elsewhere bool
	var as string
	cmd := a.prints(&cobra.Command{
		Use:   "check [FILE]",
		Short: "Report every mistake in a configuration file",
		Long: "Report every mistake in a configuration file (default " + defaultConfig + ") and in the\n" +
			"certificates that it names. Also report what this host lacks: etcd's program, its unit, the unit's\n" +
			"user, or an interface with the configured address. Exit with 78 on any mistake. This does not contact\n" +
			"quorumd. As root, it checks the files as the user that runs the service, and those of etcd.tls as\n" +
			"etcd's user.",
		Example: examples("quorumctl config check", "quorumctl config check --elsewhere n2.yaml"),
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := argument(args, defaultConfig)
			c, err := config.Load(file)
			doc := configCheck{File: file, Warnings: orEmpty(c.Warnings)}
			if err == nil && !elsewhere {
				err = doc.checkAccess(cmd.Context(), c, as)
				err = withMissing(err, setup.Missing(cmd.Context(), file, c))
			}
			if err != nil {
				return configFailure(file, doc.As, err)
			}
			if !elsewhere {
				also := nonEmpty(bootWarning(cmd.Context(), c), setup.NoRestoreTest(c))
				doc.Warnings = slices.Concat(doc.Warnings, also)
			}
			return a.emit(doc, func(p *page) { writeConfigCheck(p, doc) })
		},
	}, printed{name: "config-check", of: configCheck{}})
	cmd.Flags().StringVar(&as, "as", "", "check access to the files as this `user` instead of the service user")
	cmd.Flags().BoolVar(&elsewhere, "elsewhere", false,
		"the file is for another host: skip the checks of this host and of certificates")
	return cmd
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// withMissing appends missing to the mistakes in err. It returns any other error unchanged.
func withMissing(err error, missing config.Errors) error {
	problems, ok := errors.AsType[config.Errors](err)
	if err != nil && !ok || len(missing) == 0 {
		return err
	}
	return slices.Concat(problems, missing)
}

// configCheck is the document that 'quorumctl config check' prints.
type configCheck struct {
	File     string   `json:"file"`
	As       string   `json:"as,omitempty"` // the user whose access was checked
	Warnings []string `json:"warnings"`
}

// checkAccess checks the files that the configuration names. With --as, it checks them as that user, which only root
// and that user can do. Without --as, it checks them as the service user if root runs this, a service reads the
// configuration and its user exists, otherwise as the caller.
func (v *configCheck) checkAccess(ctx context.Context, c config.Config, as string) error {
	me, root := fileaccess.CurrentUser(), os.Geteuid() == 0
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
		problems, err = configErrors(c.CheckFiles())
	case root:
		v.As = user
		problems, err = fileaccess.CheckAs(ctx, v.File, user)
	case as != "":
		return &failure{
			code: exitPermission, message: "cannot check access as " + as + ": not permitted",
			hint: "run it as root",
		}
	default:
		problems, err = configErrors(c.CheckFiles())
		v.Warnings = append(v.Warnings, "checked as "+me+", but the service runs as "+user+
			"; run this as root to check what that user can read")
	}
	if errors.Is(err, fileaccess.ErrNoUser) && as == "" {
		v.As = me
		v.Warnings = append(v.Warnings, "there is no user "+user+" for the service: checked as "+me)
		problems, err = configErrors(c.CheckFiles())
	}
	if err != nil {
		return err
	}
	etcdProblems, err := v.checkEtcdAccess(ctx, c)
	if err != nil {
		return err
	}
	problems = append(problems, etcdProblems...)
	problems = append(problems, v.checkListeners(ctx, c)...)
	if as == "" && user != "" {
		v.Warnings = append(v.Warnings, fileaccess.Hidden(c)...)
	}
	if problems = append(problems, fileaccess.CheckKey(c, fileaccess.KeyOwner(c, user, me))...); len(problems) > 0 {
		return problems
	}
	return nil
}

// checkEtcdAccess checks the files of etcd.tls: as the user of etcd's unit if root runs this and that user exists,
// otherwise as the caller if permissions let the caller read them. With runner: process, they are checked with the
// other files; with runner: external, not at all.
func (v *configCheck) checkEtcdAccess(ctx context.Context, c config.Config) (config.Errors, error) {
	if c.Etcd.TLS == nil || c.Etcd.Runner != config.RunnerSystemd {
		return nil, nil
	}
	user := fileaccess.EtcdUser(ctx, c.Etcd.Unit)
	if os.Geteuid() != 0 {
		v.Warnings = append(v.Warnings, "etcd.tls: run this as root to check whether user "+user+" can read its files")
		if !mayRead(c.Etcd.TLS) {
			return nil, nil
		}
		return configErrors(c.CheckEtcdFiles())
	}
	problems, err := fileaccess.CheckEtcdAs(ctx, c, user)
	if errors.Is(err, fileaccess.ErrNoUser) {
		v.Warnings = append(v.Warnings, "etcd.tls: there is no user "+user+" to read its files: install etcd")
		return configErrors(c.CheckEtcdFiles())
	}
	return problems, err
}

// mayRead reports whether permissions let the caller read all files. A missing file counts as readable, because the
// check of the files reports it.
func mayRead(t *config.EtcdTLS) bool {
	return !slices.ContainsFunc([]string{t.CA, t.Cert, t.Key, t.PeerCA, t.PeerCert, t.PeerKey}, func(path string) bool {
		return errors.Is(unix.Access(path, unix.R_OK), fs.ErrPermission)
	})
}

// checkListeners checks that the running etcd does not listen on the address of the proxy. An etcd set up by hand may
// listen on loopback, and only one of the two programs can bind the address.
func (v *configCheck) checkListeners(ctx context.Context, c config.Config) config.Errors {
	if c.Proxy == (config.Proxy{}) || c.Etcd.Runner != config.RunnerSystemd {
		return nil
	}
	urls, err := setup.Listens(ctx, c.Etcd.Unit)
	if err != nil {
		v.Warnings = append(v.Warnings, "proxy: cannot determine where "+c.Etcd.Unit+" listens: "+
			err.Error())
	}
	key, listen, url := c.ProxyOn(urls)
	if url == "" {
		return nil
	}
	return config.Errors{{
		Key: key,
		Message: key + " (" + listen + ") and the running etcd (" + c.Etcd.Unit + ", " + url +
			") listen on the same address and port; use a different port for " + key,
	}}
}

func configErrors(err error) (config.Errors, error) {
	if problems, ok := errors.AsType[config.Errors](err); ok {
		return problems, nil
	}
	return nil, err
}

func writeConfigCheck(p *page, v configCheck) {
	p.raw(display.Clean(v.File) + ": " + p.paint("OK", good)) // not wrapped: scripts search for this line
	if v.As != "" {
		p.line("  checked as %s", v.As)
	}
	for _, text := range v.Warnings {
		p.line("  %s %s", word{"warning:", warn}, text)
	}
}

// configFailure returns the failure for a file that cannot be read or has mistakes, one per line. as is the user whose
// access was checked, or empty.
func configFailure(file, as string, err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := &failure{
		code: exitConfig, message: err.Error(),
		hint: "quorumctl config default explains every key",
	}
	if errors.Is(err, fs.ErrPermission) {
		f.code, f.hint = exitPermission, "run it as root, or as the user that runs quorumd"
	}
	if problems, ok := errors.AsType[config.Errors](err); ok {
		f.message = "cannot use " + file + ": " + display.Count(len(problems), "mistake", "mistakes")
		f.details = strings.Split(err.Error(), "\n")
		if as != "" {
			f.details = append(f.details, "checked as "+as)
		}
	} else if !strings.HasPrefix(f.message, "cannot ") {
		f.message = "cannot use " + file + ": " + f.message
	}
	return f
}

func (a *app) configShowCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:   "show [FILE]",
		Short: "Print the configuration with all defaults filled in",
		Long: "Print the configuration in FILE (default " + defaultConfig + ") as YAML, with the default of\n" +
			"every key that it does not set. This does not contact quorumd: a running quorumd uses the file that it\n" +
			"read at its last start or reload.",
		Example: examples("quorumctl config show", "quorumctl config show | grep -A12 '^timing:'"),
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file := argument(args, defaultConfig)
			c, err := config.Load(file)
			if err != nil {
				return configFailure(file, "", err)
			}
			text, err := c.YAML()
			if err != nil {
				return cannot("show the configuration", err)
			}
			return a.write(text)
		},
	}, printed{instead: "YAML"})
}

func (a *app) configDefaultCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:   "default",
		Short: "Print the commented default configuration",
		Example: examples("quorumctl config default | less",
			"quorumctl config default > /tmp/quorumd.yaml"),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if _, err := a.out.Write(config.Default()); err != nil {
				return cannot("write the output", err)
			}
			return nil
		},
	}, printed{instead: "YAML"})
}

func orEmpty(list []string) []string {
	return append([]string{}, list...)
}
