// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/fileaccess"
	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
	"github.com/quorumd/quorumd/cmd/quorumctl/setup"
)

// initOptions holds the flags of init.
type initOptions struct {
	setup.Answers

	file   string
	dryRun bool
}

func (a *app) initCommand() *cobra.Command {
	var o initOptions
	cmd := a.prints(&cobra.Command{
		Use:     "init --hosts NAME=ADDRESS,...",
		GroupID: groupService,
		Short:   "Write this host's configuration for a new cluster",
		Long: "Write a checked configuration for this host, show what was found on it, and print the next command.\n" +
			"An existing configuration is never overwritten. Nothing is started.",
		Example: examples("quorumctl init --hosts n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3 --dry-run",
			"quorumctl init --hosts n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3 --mode manage --tls n1.tar"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.init(cmd.Context(), o) },
	}, printed{name: "init", of: initResult{}})
	name, _ := os.Hostname() // without a host name, --name is required
	name, _, _ = strings.Cut(name, ".")
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Hosts, "hosts", nil, "`NAME=ADDRESS` of every host that can hold a member")
	flags.StringVar(&o.Name, "name", "", "name of this host (default its host name)")
	flags.StringVar(&o.ID, "id", "", "ID of this host (default from /etc/machine-id)")
	flags.StringVar(&o.Cluster, "cluster", "prod", "name of the cluster")
	flags.IntVar(&o.Voters, "voters", 0, "number of voters (default 3, or 1 with fewer than three hosts)")
	flags.StringVar(&o.Mode, "mode", "observe", "observe: only report; manage: act")
	flags.StringVar(&o.TLS, "tls", "", "`PATH` of this host's certificate bundle or directory")
	flags.StringVar(&o.DataDir, "data-dir", "", "etcd's data `directory` (default /var/lib/etcd/default)")
	flags.StringVar(&o.file, "file", defaultConfig, "`file` to write")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the configuration; write nothing")
	complete(cmd, "mode", []string{"observe", "manage"})
	cmd.PreRun = func(*cobra.Command, []string) {
		if o.Name == "" {
			o.Name = name
		}
	}
	return cmd
}

// initResult is the document that 'quorumctl init' prints.
type initResult struct {
	File     string      `json:"file"`
	Written  bool        `json:"written"`
	Text     string      `json:"text"`
	Found    setup.Found `json:"found"`
	Warnings []string    `json:"warnings"`
	Next     []string    `json:"next"` // commands

	installed *pki.Installed
}

func (a *app) init(ctx context.Context, o initOptions) error {
	const what = "write the configuration"
	bundle, err := o.findTLS()
	if err != nil {
		return err
	}
	doc := initResult{File: o.file}
	if doc.Found, err = setup.Find(ctx, o.Answers); err != nil {
		return setupFailure(what, err)
	}
	if found := doc.Found.Binary; found != "/usr/bin/etcd" {
		o.Binary = found
	}
	text, err := o.Text()
	if err != nil {
		return setupFailure(what, err)
	}
	c, err := config.Parse(o.file, text)
	if problems, ok := errors.AsType[config.Errors](err); ok {
		return mistakesFailure(what, exitUsage, problems)
	}
	if err != nil {
		return setupFailure(what, err)
	}
	doc.Text = string(text)
	doc.Warnings = slices.Concat(doc.Found.Warnings, c.Warnings, doc.Found.Differs(c))
	doc.Next = nextCommands(c, doc.Found, o.file)
	switch _, err := setup.CanWrite(o.file, text); {
	case err != nil && o.dryRun:
		doc.Warnings = append(doc.Warnings, err.Error())
	case err != nil: // fail before the bundle is installed
		return setupFailure(what, err)
	}
	if !o.dryRun {
		if bundle != "" {
			if doc.installed, err = installBundle(bundle); err != nil {
				return err
			}
		}
		if err := doc.write(ctx, c, text); err != nil {
			return setupFailure(what, err)
		}
	}
	doc.Warnings = orEmpty(doc.Warnings)
	return a.emit(doc, func(p *page) { writeInit(p, doc, bundle) })
}

// findTLS returns the path of the bundle to install, or "" if --tls is missing or names a directory with the files of a
// bundle.
func (o *initOptions) findTLS() (bundle string, err error) {
	const (
		what   = "write the configuration"
		remedy = "pass the bundle from quorumctl pki host, or a directory with its files"
	)
	if o.TLS == "" {
		return "", nil
	}
	info, err := os.Stat(o.TLS)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", usage(remedy, "cannot %s: cannot read %s: it does not exist", what, o.TLS)
	case err != nil:
		return "", setupFailure(what, err)
	case info.Mode().IsRegular():
		bundle, o.TLS = o.TLS, hostTLS
		return bundle, nil
	case !info.IsDir():
		return "", usage(remedy, "cannot %s: cannot read %s: it is neither a file nor a directory", what, o.TLS)
	}
	if o.TLS, err = filepath.Abs(o.TLS); err != nil {
		return "", err
	}
	_, err = os.Stat(filepath.Join(o.TLS, "peer-ca.crt"))
	o.OneCA = errors.Is(err, os.ErrNotExist)
	return "", nil
}

// installBundle installs a bundle as pki install does by default.
func installBundle(file string) (*pki.Installed, error) {
	place := pki.Place{Dir: hostTLS}
	var err error
	if place.Etcd, place.Quorumd, err = keyReaders("etcd", "quorumd"); err != nil {
		return nil, err
	}
	if place.Addresses, err = ownAddresses(false); err != nil {
		return nil, cannot("read this host's addresses", err)
	}
	done, err := pki.Install(file, place, time.Now())
	if err != nil {
		return nil, pkiFailure("install "+file, err)
	}
	return &done, nil
}

// write writes the file, unless the configuration has mistakes or names a file that the service user cannot read;
// without root, the caller takes the place of the service user.
func (d *initResult) write(ctx context.Context, c config.Config, text []byte) error {
	as := fileaccess.ServiceUser(ctx, d.File)
	if os.Geteuid() != 0 {
		as = ""
	}
	err := setup.Write(d.File, text, func(path string) error {
		v := configCheck{File: path}
		err := v.checkAccess(ctx, c, as)
		if errors.Is(err, fileaccess.ErrNoUser) {
			v.Warnings = append(v.Warnings, "there is no user "+as+": install quorumd's package")
			err = v.checkAccess(ctx, c, "")
		}
		d.Warnings = append(d.Warnings, v.Warnings...)
		return err
	})
	d.Written = err == nil
	return err
}

// nextCommands returns the commands to run next.
func nextCommands(c config.Config, f setup.Found, file string) []string {
	var commands []string
	if f.UnitState != "enabled" && f.UnitState != "" {
		commands = append(commands, "systemctl enable "+strings.TrimSuffix(f.Unit, ".service"))
	}
	service := serviceOf(file)
	if service == "" { // no service reads that path
		commands, service = append(commands, "mv -i "+file+" "+defaultConfig), "quorumd"
	}
	commands = append(commands, "systemctl enable --now "+service)
	if c.Mode == config.ModeManage && len(f.Running) == 0 {
		commands = append(commands, "quorumctl bootstrap --yes")
	}
	return commands
}

// serviceOf returns the service that reads this file, or "".
func serviceOf(file string) string {
	path, err := filepath.Abs(file)
	if err != nil || filepath.Dir(path) != filepath.Dir(defaultConfig) {
		return ""
	}
	name, isYAML := strings.CutSuffix(filepath.Base(path), ".yaml")
	switch {
	case path == defaultConfig:
		return "quorumd"
	case isYAML && name != "":
		return "quorumd@" + name
	}
	return ""
}

func writeInit(p *page, d initResult, bundle string) {
	f := d.Found
	if d.installed != nil {
		writeInstalled(p, *d.installed, bundle)
	}
	found := func(what, format string, args ...any) { p.line("  %-9s "+format, append([]any{what}, args...)...) }
	p.line("found here:")
	found("address", "%s%s", f.Address, display.After(" on ", f.Interface))
	found("disk", "%s%s, %s GiB free", f.DataDir, display.After(": ", f.Disk), gib(f.FreeBytes))
	if f.Binary != "" {
		found("etcd", "%s%s", f.Binary, display.After(", version ", f.Version))
	}
	if f.UnitState != "" {
		found("unit", "%s, %s", f.Unit, f.UnitState)
	}
	for _, flag := range slices.Sorted(maps.Keys(f.Running)) {
		found("runs with", "--%s=%s", flag, f.Running[flag])
	}
	for _, text := range d.Warnings {
		p.line("  %s %s", word{"warning:", warn}, text)
	}
	if !d.Written {
		p.line("would write %s:", d.File)
		for line := range strings.Lines(d.Text) {
			p.raw("    " + strings.TrimRight(line, "\n"))
		}
		return
	}
	p.line("wrote %s: %s", d.File, word{"OK", good})
	for _, command := range d.Next {
		if strings.HasPrefix(command, "quorumctl bootstrap") {
			p.line("→ on one host only, when quorumd runs on all: %s", command)
			continue
		}
		p.line("→ %s", command)
	}
}

func gib(bytes uint64) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<30)) }

// setupFailure turns an error of package setup into a failure.
func setupFailure(what string, err error) error {
	if r, ok := errors.AsType[*setup.Refusal](err); ok {
		return &failure{code: exitUsage, message: "cannot " + what + ": " + r.Text, hint: r.Remedy}
	}
	if _, ok := errors.AsType[*setup.FileExists](err); ok {
		return &failure{
			code: exitConfig, message: fmt.Sprintf("cannot %s: %v", what, err),
			hint: "check it with quorumctl config check, or move it away; --dry-run shows what would be written",
		}
	}
	if errors.Is(err, os.ErrPermission) {
		return &failure{
			code: exitPermission, message: fmt.Sprintf("cannot %s: %v", what, err),
			hint: "run it as root; --dry-run shows what would be written",
		}
	}
	if problems, ok := errors.AsType[config.Errors](err); ok {
		return mistakesFailure(what, exitConfig, problems)
	}
	return cannot(what, err)
}

// mistakesFailure returns the error for a configuration that would have mistakes.
func mistakesFailure(what string, code int, problems config.Errors) error {
	return &failure{
		code: code, message: "cannot " + what + ": it would have mistakes, so it was not written",
		details: strings.Split(problems.Error(), "\n"), hint: "quorumctl init --help",
	}
}
