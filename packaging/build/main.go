// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Command build makes the packages of quorumd or of etcd: it builds the programs, renders the manual pages and the
// completions into a staging area, and has nfpm pack them. Builds from the same sources, version and SOURCE_DATE_EPOCH
// are identical. It runs in the root of the repository; `make packages` calls it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/journalcatalog"
)

// job describes a build.
type job struct {
	version string // version of the packages
	release string // the version that the programs report
	stage   string
	out     string
	nfpm    string
	md2man  string
	arches  []string
	formats []string
	product product
	date    time.Time // date of all files in the packages
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "packages: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var j job
	var arches, formats, of string
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.StringVar(&j.version, "version", "", "version of the packages, such as 1.2.3 or 0~git20260102.abcdef0")
	flags.StringVar(&j.release, "release", "", "version that the programs report (default: the package version)")
	flags.StringVar(&j.stage, "stage", ".cache/packaging", "`directory` for the staging area")
	flags.StringVar(&j.out, "out", "bin/packages", "`directory` for the packages")
	flags.StringVar(&j.nfpm, "nfpm", "", "`path` of nfpm")
	flags.StringVar(&j.md2man, "md2man", "", "`path` of go-md2man")
	flags.StringVar(&arches, "arch", "amd64,arm64", "architectures")
	flags.StringVar(&of, "package", "quorumd", "what to package: quorumd or etcd (with the version of its Go module)")
	flags.StringVar(&formats, "format", "deb,rpm", "formats")
	if err := flags.Parse(args); err != nil {
		return err
	}
	j.arches, j.formats = strings.Split(arches, ","), strings.Split(formats, ",")
	var ok bool
	if j.product, ok = products()[of]; !ok {
		return fmt.Errorf("cannot package %q: use quorumd or etcd", of)
	}
	if of == "etcd" {
		if err := j.pinned(ctx); err != nil {
			return err
		}
	}
	if j.release == "" {
		j.release = j.version
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("cannot read SOURCE_DATE_EPOCH: %w; set it to the Unix time of the last change", err)
	}
	j.date = time.Unix(epoch, 0).UTC()
	if j.version == "" || j.nfpm == "" || j.md2man == "" {
		return errors.New("cannot build without -version, -nfpm and -md2man")
	}
	for _, dir := range []string{j.stage, j.out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return j.build(ctx)
}

func (j job) build(ctx context.Context) error {
	for _, arch := range j.arches {
		if err := j.programs(ctx, arch); err != nil {
			return err
		}
	}
	if err := j.licences(ctx); err != nil {
		return err
	}
	if err := j.pages(ctx); err != nil {
		return err
	}
	if j.product.own {
		if err := errors.Join(j.completions(ctx), j.catalog()); err != nil {
			return err
		}
	}
	if err := j.changelog("CHANGELOG.md"); err != nil {
		return err
	}
	for _, arch := range j.arches {
		for _, format := range j.formats {
			if err := j.pack(ctx, arch, format); err != nil {
				return err
			}
		}
	}
	return nil
}

// programs builds the programs of the product, as position-independent executables without paths of this machine.
func (j job) programs(ctx context.Context, arch string) error {
	for _, name := range slices.Sorted(maps.Keys(j.product.programs)) {
		path, err := filepath.Abs(filepath.Join(j.stage, arch, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "building %s for %s\n", name, arch)
		c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-buildmode=pie",
			"-ldflags", "-s -w -buildid= -X github.com/prometheus/common/version.Version="+j.release,
			"-o", path, j.product.programs[name])
		c.Dir = j.product.dir
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		if _, err := output(c); err != nil {
			return err
		}
	}
	return nil
}

func (j job) pages(ctx context.Context) error {
	sources, err := filepath.Glob(j.product.pages)
	if err != nil {
		return err
	}
	for _, source := range sources {
		c := exec.CommandContext(ctx, j.md2man)
		if c.Stdin, err = page(source); err != nil {
			return err
		}
		rendered, err := output(c)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(source), ".md") + ".gz"
		if err := writeGzip(filepath.Join(j.stage, name), rendered); err != nil {
			return err
		}
	}
	return nil
}

// completions generates the shell completions with a quorumctl built for this machine.
func (j job) completions(ctx context.Context) error {
	program := filepath.Join(j.stage, runtime.GOARCH, "quorumctl")
	if _, err := os.Stat(program); err != nil {
		if err := j.programs(ctx, runtime.GOARCH); err != nil {
			return err
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		text, err := output(exec.CommandContext(ctx, program, "completion", shell))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(j.stage, "quorumctl."+shell), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (j job) catalog() error {
	var text bytes.Buffer
	if err := journalcatalog.Write(&text); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(j.stage, "quorumd.catalog"), text.Bytes(), 0o644)
}

func (j job) pack(ctx context.Context, arch, format string) error {
	stage, err := filepath.Abs(j.stage)
	if err != nil {
		return err
	}
	name := map[string]string{
		"deb": fmt.Sprintf("%s_%s-1_%s.deb", j.product.name, j.version, arch),
		"rpm": fmt.Sprintf("%s-%s-1.%s.rpm", j.product.name, j.version,
			map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]),
	}[format]
	path := filepath.Join(j.out, name)
	// The variables are replaced here, because nfpm itself replaces them in only a few places.
	recipe, err := os.ReadFile(j.product.recipe)
	if err != nil {
		return err
	}
	each, err := expand(string(recipe))
	if err != nil {
		return err
	}
	values := strings.NewReplacer("${ARCH}", arch, "${VERSION}", j.version, "${STAGE}", stage)
	filled := filepath.Join(j.stage, "nfpm.yaml")
	if err := os.WriteFile(filled, []byte(values.Replace(each)), 0o644); err != nil {
		return err
	}
	if _, err := output(exec.CommandContext(ctx, j.nfpm, "package", "-f", filled, "-p", format, "-t",
		path)); err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}

// output runs a command and returns its stdout; its stderr is part of the error.
func output(c *exec.Cmd) ([]byte, error) {
	out, err := c.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w\n%s%s", err, exit.Stderr, out)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot run %s: %w", strings.Join(c.Args, " "), err)
	}
	return out, nil
}
