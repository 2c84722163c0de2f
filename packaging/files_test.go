// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"bytes"
	"debug/buildinfo"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// output runs a command on this machine and returns its whole output.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestTwoBuildsGiveTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"amd64.deb", "x86_64.rpm"} {
		one, two := read(t, built(t, "first", kind)), read(t, built(t, "again", kind))
		if one != two {
			t.Errorf("%s: %d and %d bytes, which differ", kind, len(one), len(two))
		}
	}
}

func TestThePackagesMatchTheirListOfContents(t *testing.T) {
	t.Parallel()
	// The list has mode and path, and the flags of files in the rpm, but not size and date, which change with every
	// commit.
	var list strings.Builder
	for line := range strings.Lines(output(t, "dpkg-deb", "-c", built(t, "first", "amd64.deb"))) {
		if f := strings.Fields(line); !strings.HasPrefix(f[0], "d") {
			list.WriteString("deb " + f[0] + " " + f[5] + "\n")
		}
	}
	for line := range strings.Lines(output(t, "rpm", "-qp", "--nosignature", "--qf",
		"[rpm %{FILEMODES:perms} %{FILENAMES} %{FILEFLAGS:fflags}\n]", built(t, "first", "x86_64.rpm"))) {
		list.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	golden := "testdata/contents.golden"
	if *update {
		write(t, golden, list.String())
	}
	if want := read(t, golden); list.String() != want {
		t.Errorf("the packages contain\n%s\nwant\n%s", list.String(), want)
	}
}

func TestBothArchitecturesHaveTheSameFilesAndTheirOwnPrograms(t *testing.T) {
	t.Parallel()
	names := func(deb string) string {
		var b strings.Builder
		for line := range strings.Lines(output(t, "dpkg-deb", "-c", deb)) {
			b.WriteString(strings.Fields(line)[5] + "\n")
		}
		return b.String()
	}
	amd, arm := built(t, "first", "amd64.deb"), built(t, "first", "arm64.deb")
	if a, b := names(amd), names(arm); a != b {
		t.Errorf("amd64 holds\n%s\narm64\n%s", a, b)
	}
	for deb, machine := range map[string]byte{amd: 0x3e, arm: 0xb7} { // e_machine: EM_X86_64, EM_AARCH64
		dir := t.TempDir()
		output(t, "dpkg-deb", "-x", deb, dir)
		for _, program := range []string{"quorumd", "quorumctl"} {
			head := []byte(read(t, filepath.Join(dir, "usr/bin", program)))[:20]
			// ET_DYN: position independent
			if !bytes.HasPrefix(head, []byte("\x7fELF")) || head[16] != 3 || head[18] != machine {
				t.Errorf("%s in %s begins with % x", program, filepath.Base(deb), head)
			}
		}
	}
}

// TestThePackagesNameEveryModuleOfTheirPrograms reads from the programs which modules they were built from.
func TestThePackagesNameEveryModuleOfTheirPrograms(t *testing.T) {
	t.Parallel()
	for deb, rpm := range map[string]string{"amd64.deb": "x86_64.rpm", "arm64.deb": "aarch64.rpm"} {
		dir := t.TempDir()
		output(t, "dpkg-deb", "-x", built(t, "first", deb), dir)
		notices := read(t, filepath.Join(dir, "usr/share/doc/quorumd/third-party"))
		for _, program := range []string{"quorumd", "quorumctl"} {
			info, err := buildinfo.ReadFile(filepath.Join(dir, "usr/bin", program))
			if err != nil || len(info.Deps) == 0 {
				t.Fatalf("%s: %v, %v", program, info, err)
			}
			for _, m := range info.Deps {
				if line := "\n" + m.Path + " " + m.Version + ": "; !strings.Contains(notices, line) {
					t.Errorf("%s of %s has %s %s, which the notices do not name", program, deb, m.Path, m.Version)
				}
			}
		}
		output(t, "sh", "-c", "rpm2cpio \"$0\" | cpio --quiet --no-absolute-filenames -D \"$1\" -idm '*/third-party'",
			built(t, "first", rpm), dir)
		if read(t, filepath.Join(dir, "usr/share/licenses/quorumd/third-party")) != notices {
			t.Errorf("the notices of %s differ from those of %s", rpm, deb)
		}
	}
}

func TestLintianAcceptsThePackages(t *testing.T) {
	t.Parallel()
	// Go stores strings without separators, so two adjacent strings can look like one misspelled word.
	for _, arch := range []string{"amd64.deb", "arm64.deb"} {
		out, err := exec.CommandContext(t.Context(), "lintian", "--allow-root", "--suppress-tags",
			"spelling-error-in-binary", "--fail-on", "error,warning,info", "--display-info",
			built(t, "first", arch)).CombinedOutput()
		if err != nil || len(bytes.TrimSpace(out)) > 0 {
			t.Errorf("%s: %v\n%s", arch, err, out)
		}
	}
}

func TestRpmlintAcceptsThePackages(t *testing.T) {
	t.Parallel()
	rpmlint(t, built(t, "first", "x86_64.rpm"), built(t, "first", "aarch64.rpm"))
}

// rpmlint fails the test if the program rpmlint reports anything. The program unpacks with cpio, which writes files to
// the paths in the package. nfpm's paths begin with a slash. Without the option in the wrapper, a cpio that runs as
// root would write the files to this machine, and rpmlint would not find them.
func rpmlint(t *testing.T, packages ...string) {
	t.Helper()
	cpio, err := exec.LookPath("cpio")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	wrapper := "#!/bin/sh\nexec " + cpio + " --no-absolute-filenames \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "cpio"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "rpmlint", append([]string{"-c", "rpmlint.toml"}, packages...)...)
	c.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "0 errors, 0 warnings") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheServicesAreHardened(t *testing.T) {
	t.Parallel()
	score := regexp.MustCompile(`Overall exposure level for \S+: (\S+)`)
	for _, unit := range []string{
		"quorumd.service", "quorumd@.service", "quorumd-runas@.service",
		"quorumd-helper@.service", "quorumd-smart.service", "quorumd-kernel-log.service", "quorumd-proxy.service",
		"quorumd-proxy@.service",
	} {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--no-pager", "--offline=true",
			"--threshold=20", "systemd/"+unit).CombinedOutput()
		found := score.FindStringSubmatch(string(out))
		if err != nil || found == nil {
			t.Errorf("%s has an exposure above 2.0: %v\n%s", unit, err, out)
			continue
		}
		t.Logf("%s: exposure %s", unit, found[1])
		if unit == "quorumd.service" && !strings.Contains(read(t, "../contrib/docs/figures.yaml"),
			"systemd-analyze security\n  value: \""+found[1]+"\"\n") {
			t.Errorf("the pages quote a different exposure of %s; it is %s: see "+
				"contrib/docs/figures.yaml", unit, found[1])
		}
	}
}

func TestTheServicesHaveMemoryLimits(t *testing.T) {
	t.Parallel()
	for unit, most := range map[string]string{
		"quorumd.service": "512M", "quorumd@.service": "512M",
		"quorumd-runas@.service": "2G", "quorumd-proxy.service": "2G", "quorumd-proxy@.service": "2G",
	} {
		if text := read(t, "systemd/"+unit); strings.Count(text, "\nMemoryMax="+most+"\n") != 1 {
			t.Errorf("%s has no MemoryMax=%s", unit, most)
		}
	}
}

func TestTheTemplateUnitDiffersFromTheServiceOnlyWhereItMust(t *testing.T) {
	t.Parallel()
	lines := func(file string) []string {
		var out []string
		for line := range strings.Lines(read(t, file)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				out = append(out, line)
			}
		}
		return out
	}
	may := regexp.MustCompile(`^(Description|ExecStart|StateDirectory|RuntimeDirectory)=.*%i`)
	for _, name := range []string{"quorumd", "quorumd-proxy"} {
		one, many := lines("systemd/"+name+".service"), lines("systemd/"+name+"@.service")
		if len(one) != len(many) {
			t.Fatalf("%s: %d lines and %d", name, len(one), len(many))
		}
		for i := range one {
			if one[i] != many[i] && !may.MatchString(many[i]) {
				t.Errorf("%s: %q became %q", name, one[i], many[i])
			}
		}
	}
}

// TestShellScriptsParse checks the syntax of all scripts, because most run only when a package is upgraded or removed.
func TestShellScriptsParse(t *testing.T) {
	t.Parallel()
	var scripts []string
	for _, pattern := range []string{"scripts/*", "scripts/rpm/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, found...)
	}
	for _, script := range scripts {
		if info, err := os.Stat(script); err != nil || info.IsDir() {
			continue
		}
		output(t, "sh", "-n", script)
	}
}
