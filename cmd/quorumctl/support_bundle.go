// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/cmd/quorumctl/supportbundle"
)

func (a *app) supportBundleCommand() *cobra.Command {
	var out, file string
	cmd := a.prints(&cobra.Command{
		Use:     "support-bundle",
		GroupID: groupInspect,
		Short:   "Create a support bundle: one archive about this host",
		Long: "Collect in one compressed archive what quorumd, etcd, systemd and the kernel report about this host,\n" +
			"and what the other hosts have published. Known secrets are removed, but review the archive before\n" +
			"you send it. The command works without quorumd and etcd: missing parts are listed, and the exit\n" +
			"status is 69. Run it as root to include every file.",
		Example: examples("quorumctl support-bundle", "quorumctl support-bundle --out /tmp/n1.tar.gz"),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.supportBundle(cmd.Context(), out, file) },
	}, printed{instead: "an archive"})
	cmd.Flags().StringVar(&out, "out", "", "file to write; it must not exist (default quorumd-HOST-TIME.tar.gz)")
	cmd.Flags().StringVar(&file, "config", defaultConfig, "quorumd's configuration file")
	return cmd
}

// fallbackConfig replaces a configuration that cannot be loaded.
const fallbackConfig = `{cluster: {name: unknown, endpoints: ["http://127.0.0.1:2379"]}, ` +
	`etcd: {clientURL: "http://127.0.0.1:2379", peerURL: "http://127.0.0.1:2380"}}`

func (a *app) supportBundle(ctx context.Context, out, file string) error {
	now := time.Now().UTC()
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	dir := fmt.Sprintf("quorumd-%s-%s", host, now.Format("20060102T150405Z"))
	out = cmp.Or(out, dir+".tar.gz")
	into, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return usage("choose a different file with --out, or move that one away",
			"cannot write the support bundle: %s exists", out)
	case errors.Is(err, os.ErrNotExist):
		return usage("choose a different file with --out", "cannot write the support bundle: there is no directory %s",
			filepath.Dir(out))
	case err != nil:
		return cannot("write the support bundle", err)
	}
	conf, confErr := config.Load(file)
	if confErr != nil {
		if conf, err = config.Parse("defaults", []byte(fallbackConfig)); err != nil {
			return cannot("create the support bundle", err)
		}
	}
	redactor, unread := redactorOf(conf, file)
	files := supportbundle.Collect(ctx, a.sources(ctx, conf, confErr, file), redactor)
	err = supportbundle.Write(into, dir, files, now)
	if err = errors.Join(err, into.Sync(), into.Close()); err != nil {
		return cannot("write the support bundle", errors.Join(err, os.Remove(out)))
	}
	return a.showBundle(out, files, unread)
}

// showBundle shows which parts are in the bundle and which are missing.
func (a *app) showBundle(out string, files []supportbundle.File, unread []string) error {
	p := &page{coloured: a.coloured()}
	for _, f := range files {
		if f.Err != nil {
			p.line("%s: %v", word{"missing: " + f.Name, warn}, f.Err)
		}
		if f.Cut > 0 {
			p.line("%s: truncated by %d bytes", f.Name, f.Cut)
		}
	}
	if len(unread) > 0 {
		p.line("%s", word{"cannot read these files, so their secrets may be in the bundle: " +
			strings.Join(unread, ", "), warn})
	}
	missing := supportbundle.Missing(files)
	p.line("wrote %s: %d files. Known secrets are removed, but review it before you send it.", out,
		len(files)+1-missing)
	if err := a.write([]byte(p.String())); err != nil {
		return err
	}
	if missing > 0 {
		return &failure{
			code: exitUnavailable, message: fmt.Sprintf("support bundle incomplete: %d of %d parts are missing",
				missing, len(files)),
			hint: "run quorumctl support-bundle as root; a part that is still missing points to the fault",
		}
	}
	return nil
}

// redactorOf returns a redactor for the contents of every secret file that the configuration names, and the paths of
// those files that cannot be read.
func redactorOf(c config.Config, file string) (*supportbundle.Redactor, []string) {
	paths := []string{c.Etcd.PasswordFile, c.Backup.IdentityFile, c.Metrics.WebConfig}
	if s := c.Backup.Store.S3; s != nil {
		paths = append(paths, s.CredentialsFile)
	}
	if t := c.Cluster.TLS; t != nil {
		paths = append(paths, t.Key)
	}
	if t := c.Etcd.TLS; t != nil {
		paths = append(paths, t.Key, t.PeerKey)
	}
	for name, value := range c.Etcd.Environment {
		if strings.HasSuffix(name, "KEY_FILE") {
			paths = append(paths, value)
		}
	}
	// An invalid configuration is not loaded, so also search its text for the paths of secret files.
	text, err := supportbundle.ReadSecret(file)
	for line := range strings.Lines(string(text)) {
		uncommented, _, _ := strings.Cut(line, "#")
		for _, found := range secretPath().FindAllStringSubmatch(uncommented, -1) {
			paths = append(paths, found[1])
		}
	}
	var secrets [][]byte
	var unread []string
	if err != nil {
		unread = append(unread, "the files named in "+file)
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	for _, path := range paths {
		if path == "" {
			continue
		}
		text, err := supportbundle.ReadSecret(path)
		if err != nil {
			unread = append(unread, path)
		}
		secrets = append(secrets, text)
	}
	slices.Sort(unread)
	return supportbundle.NewRedactor(secrets...), unread
}

// secretPath returns a regular expression that finds the paths of secret files in a configuration, even in an invalid
// one.
func secretPath() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:passwordFile|identityFile|credentialsFile|webConfig|key|peerKey|` +
		`\w+_KEY_FILE)["']?\s*:\s*["']?(/[^\s,}"']+)`)
}

// textSource returns a function for Source.Get that returns the text output of a command.
func textSource(text func(*page)) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		p := &page{}
		text(p)
		return []byte(p.String()), nil
	}
}

// jsonSource returns a function for Source.Get that returns doc as JSON or, if err is set, only err.
func jsonSource(doc any, err error) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		return asJSON(doc)
	}
}

// statusTimeout bounds the request for the status.
const statusTimeout = 10 * time.Second

// sources returns the parts of a bundle. If quorumd hangs, only its own parts are missing.
func (a *app) sources(ctx context.Context, c config.Config, confErr error, file string) []supportbundle.Source {
	status, err := a.statusWithin(ctx, statusTimeout)
	of := func(text func(*page)) func(context.Context) ([]byte, error) {
		if err != nil {
			return jsonSource(nil, err)
		}
		return textSource(text)
	}
	list := []supportbundle.Source{
		{Name: "status.json", Get: jsonSource(status, err)},
		{Name: "status.txt", Get: of(func(p *page) { writeStatus(p, status) })},
		{Name: "explain.txt", Get: of(func(p *page) { writeExplanation(p, status) })},
		{Name: "health.txt", Get: of(func(p *page) { writeHealth(p, status) })},
		{Name: "network.txt", Get: of(func(p *page) { writeNetwork(p, networkOf(status)) })},
		{Name: "network.json", Get: jsonSource(networkOf(status), err)},
		{Name: "checks.json", Get: func(ctx context.Context) ([]byte, error) {
			checks, err := a.client().Checks(ctx)
			return jsonSource(checks, err)(ctx)
		}},
		{Name: "history.json", Get: func(ctx context.Context) ([]byte, error) {
			history, err := a.client().History(ctx, control.MaxHistory)
			if errors.Is(err, control.ErrNotNewest) {
				err = nil
			}
			return jsonSource(history, err)(ctx)
		}},
	}
	read := supportbundle.FromFile(file, false)
	config := supportbundle.Source{Name: "quorumd.yaml", Get: func(ctx context.Context) ([]byte, error) {
		text, err := read(ctx)
		if err == nil && confErr != nil { // the error quotes lines of the file, so its comments are removed, too
			err = errors.New(string(supportbundle.WithoutComments([]byte(confErr.Error()))))
		}
		return supportbundle.WithoutComments(text), err
	}}
	return append(append(list, config), supportbundle.OfHost(hostOf(c))...)
}

func (a *app) statusWithin(ctx context.Context, limit time.Duration) (control.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return a.client().Status(ctx)
}

// hostOf returns the sources on this host, as the configuration names them.
func hostOf(c config.Config) supportbundle.Host {
	h := supportbundle.Host{
		Units: []string{"quorumd.service", c.Etcd.Unit}, Etcd: c.Etcd.Binary, EnvironmentFile: c.Etcd.EnvironmentFile,
		DataDir: c.Etcd.DataDir, LogFile: c.Etcd.LogFile,
		Metrics:     cmp.Or(c.Etcd.MetricsURL, c.Etcd.ClientURL),
		OwnMetrics:  "http://" + c.Metrics.Listen,
		PrivateFile: c.Metrics.WebConfig != "",
	}
	if t := c.Cluster.TLS; t != nil {
		h.TLS = supportbundle.TLS{CA: t.CA, Cert: t.Cert, Key: t.Key}
		h.Certificates = append(h.Certificates, t.CA, t.Cert)
	}
	if t := c.Etcd.TLS; t != nil {
		h.Certificates = append(h.Certificates, t.CA, t.Cert, t.PeerCA, t.PeerCert)
	}
	for name, value := range c.Etcd.Environment {
		if strings.HasSuffix(name, "CERT_FILE") || strings.HasSuffix(name, "CA_FILE") {
			h.Certificates = append(h.Certificates, value)
		}
	}
	slices.Sort(h.Certificates)
	h.Certificates = slices.DeleteFunc(slices.Compact(h.Certificates), func(path string) bool { return path == "" })
	switch c.Etcd.Runner {
	case config.RunnerSystemd:
		h.Unit, h.LogFile = c.Etcd.Unit, ""
	case config.RunnerExternal: // the service manager that runs etcd keeps etcd's log
		h.LogFile = ""
	case config.RunnerProcess:
	}
	return h
}
