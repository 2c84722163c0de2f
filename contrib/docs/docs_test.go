// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/contrib/docs"
)

// root is the path of the checkout from this directory.
const root = "../.."

// pages returns the text of every Markdown page for users, by its path in the checkout.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	inline  = regexp.MustCompile("`[^`\n]+`")
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	linked  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// anchors returns the anchors of a page, as Markdown derives them from headings.
func anchors(text string) []string {
	var list []string
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		list = append(list, anchor(h[1]))
	}
	return list
}

// anchor derives the anchor of a heading.
func anchor(heading string) string {
	kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(kept, " ", "-")
}

func TestEveryLinkHasATarget(t *testing.T) {
	t.Parallel()
	all := pages(t)
	n := 0
	for name, text := range all {
		for _, link := range linked.FindAllStringSubmatch(inline.ReplaceAllString(text, "``"), -1) {
			target := link[1]
			if strings.HasPrefix(target, "https://") || strings.HasPrefix(target, "http://") {
				continue
			}
			n++
			file, part, _ := strings.Cut(target, "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s: %v", name, target, err)
				continue
			}
			if part != "" && !slices.Contains(anchors(all[to]), part) {
				t.Errorf("%s links to %s, but %s has only %v", name, target, to, anchors(all[to]))
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d links were found", n)
	}
}

func TestTheIndexNamesEveryPage(t *testing.T) {
	t.Parallel()
	all := pages(t)
	index := all["contrib/docs/README.md"]
	for name := range all {
		page, ours := strings.CutPrefix(name, "contrib/docs/")
		if ours && page != "README.md" && !strings.Contains(index, "]("+page+")") {
			t.Errorf("contrib/docs/README.md does not link to %s", page)
		}
	}
}

// TestPackagedPagesLinkToEachOther checks the pages as they are installed on a host, below /usr/share/doc/quorumd.
func TestPackagedPagesLinkToEachOther(t *testing.T) {
	t.Parallel()
	recipe, err := os.ReadFile(filepath.Join(root, "packaging/nfpm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, packager := range []string{"deb", "rpm"} {
		shipped := shippedBy(t, string(recipe), packager)
		n := 0
		for name, text := range pages(t) {
			at, is := shipped[name]
			if !is {
				continue
			}
			for _, link := range linked.FindAllStringSubmatch(inline.ReplaceAllString(text, "``"), -1) {
				file, _, _ := strings.Cut(link[1], "#")
				if file == "" || strings.Contains(file, "://") {
					continue
				}
				n++
				if to := path.Join(path.Dir(name), file); path.Join(path.Dir(at), file) != shipped[to] {
					t.Errorf("%s: %s links to %s, which does not exist", packager, at, link[1])
				}
			}
		}
		if n < 30 {
			t.Errorf("%s: only %d links were found", packager, n)
		}
	}
}

// shippedBy returns the installed path of each document of the checkout, according to the package recipe.
func shippedBy(t *testing.T, recipe, packager string) map[string]string {
	t.Helper()
	shipped := map[string]string{}
	line := regexp.MustCompile(`\{src: (contrib/\S+), dst: (/usr/share/doc/quorumd/\S+), packager: ` + packager + `,`)
	for _, m := range line.FindAllStringSubmatch(recipe, -1) {
		files, err := filepath.Glob(filepath.Join(root, m[1]))
		if err != nil || len(files) == 0 {
			t.Fatalf("the recipe names %s, which matches %d files: %v", m[1], len(files), err)
		}
		for _, file := range files {
			to := m[2]
			if strings.HasSuffix(to, "/") {
				to += filepath.Base(file)
			}
			shipped[path.Join(path.Dir(m[1]), filepath.Base(file))] = to
		}
	}
	return shipped
}

func TestTheReadmeIsShort(t *testing.T) {
	t.Parallel()
	if n := strings.Count(pages(t)["README.md"], "\n"); n > 150 {
		t.Errorf("README.md has %d lines; at most 150: move a part to contrib/docs", n)
	}
}

// cells returns the cells of each row of the table under this heading of a page, by the row's first cell and then by
// column.
func cells(page, heading string) map[string]map[string]string {
	_, section, _ := strings.Cut(page, "\n"+heading+"\n")
	rows := map[string]map[string]string{}
	var columns []string
	for line := range strings.Lines(section) {
		row := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		switch {
		case strings.HasPrefix(line, "#"):
			return rows
		case !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--"):
		case columns == nil:
			columns = row
		default:
			rows[row[0]] = map[string]string{}
			for i, cell := range row[1:] {
				rows[row[0]][columns[i+1]] = cell
			}
		}
	}
	return rows
}

func TestTheReadmeComparesAsThePageAboutAlternatives(t *testing.T) {
	t.Parallel()
	all := pages(t)
	whole := cells(all["contrib/docs/alternatives.md"], "## Comparison")
	short := cells(all["README.md"], "## Comparison")
	if len(short) < 5 {
		t.Fatalf("README.md compares only %d rows", len(short))
	}
	for row, columns := range short {
		for column, cell := range columns {
			if want, has := whole[row][column]; !has || cell != want {
				t.Errorf("README.md has %q for %s in row %q, and alternatives.md %q", cell, column, row, want)
			}
		}
	}
}

func TestPicturesAreSmall(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.[ps][nv]g")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() > 100<<10 {
			t.Errorf("%s has more than 100 KiB: %v", file, err)
		}
	}
}

func TestTheRecordingIsSelfContained(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	image := string(text)
	for _, foreign := range []string{"src=", "href", "url(", "@import", "<script", "<foreignObject"} {
		if strings.Contains(image, foreign) {
			t.Errorf("the image contains %s", foreign)
		}
	}
	if !strings.Contains(image, "quorumctl status") || !strings.Contains(image, "@keyframes") {
		t.Error("the image is not a recording of the demo")
	}
}

func TestMakeTargetsNamedByPagesExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	makefile := string(text)
	called := regexp.MustCompile("(?m)(?:^    (?:\\S*[#$] )?|`)make ([a-z][a-z0-9-]*)((?: [A-Z]+=\\S+)*)")
	n := 0
	for name, text := range pages(t) {
		for _, call := range called.FindAllStringSubmatch(text, -1) {
			n++
			if !regexp.MustCompile(`(?m)^([a-z0-9-]+ )*` + regexp.QuoteMeta(call[1]) + `:`).MatchString(makefile) {
				t.Errorf("%s: make %s: there is no such target", name, call[1])
			}
			for _, setting := range strings.Fields(call[2]) {
				variable, _, _ := strings.Cut(setting, "=")
				if !strings.Contains(makefile, "$("+variable+")") && !strings.Contains(makefile, "(or $("+variable) {
					t.Errorf("%s: make %s: the Makefile does not use %s", name, call[1], variable)
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d calls of make were found", n)
	}
}

// TestTestsNamedByPagesExist checks the tests to which a page refers as evidence.
func TestTestsNamedByPagesExist(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile("`go test(?: -v)? -run (Test\\w+) \\./(\\S+)`")
	n := 0
	for name, text := range pages(t) {
		for _, call := range named.FindAllStringSubmatch(text, -1) {
			n++
			files, err := filepath.Glob(filepath.Join(root, call[2], "*_test.go"))
			if err != nil || !slices.ContainsFunc(files, func(file string) bool {
				text, err := os.ReadFile(file)
				return err == nil && strings.Contains(string(text), "\nfunc "+call[1])
			}) {
				t.Errorf("%s: %s: there is no such test", name, call[0])
			}
		}
	}
	if n < 2 {
		t.Errorf("only %d calls of go test were found", n)
	}
}

// TestManualPagesReferToExistingPages checks references to quorumd's own pages, such as quorumd(8), and to
// their sections, such as HOOKS in quorumd(8).
func TestManualPagesReferToExistingPages(t *testing.T) {
	t.Parallel()
	all := pages(t)
	refers := regexp.MustCompile(`(?:(?:see |See )((?:[A-Z][A-Z]+ )*[A-Z][A-Z]+) in )?` +
		`\*\*(quorum[a-z.-]+)\*\*\(([1-9])\)`)
	said := regexp.MustCompile("man (?:[1-9] )?(quorum[a-z.-]*[a-z])")
	n := 0
	for name, text := range all {
		unwrapped := strings.ReplaceAll(text, "\n", " ")
		for _, to := range refers.FindAllStringSubmatch(unwrapped, -1) {
			n++
			page, there := all["packaging/man/"+to[2]+"."+to[3]+".md"]
			if !there {
				t.Errorf("%s refers to %s(%s), which does not exist", name, to[2], to[3])
			}
			if to[1] != "" && !strings.Contains(page, "\n# "+to[1]+"\n") {
				t.Errorf("%s refers to %s in %s(%s), which has no such section", name, to[1], to[2], to[3])
			}
		}
		for _, to := range said.FindAllStringSubmatch(unwrapped, -1) {
			found, err := filepath.Glob(filepath.Join(root, "packaging/man", to[1]+".[1-9].md"))
			if err != nil || len(found) != 1 {
				t.Errorf("%s refers to man %s, which does not exist", name, to[1])
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d references were found", n)
	}
}

// TestExcerptsMatchTheirPage compares the output that several pages show. One page has the full output of a run; the
// others quote from it.
func TestExcerptsMatchTheirPage(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for _, c := range []struct{ in, section, page string }{
		{"packaging/man/quorumd.8.md", "# DEAD MEMBERS", "contrib/docs/dead-members.md"},
		{"packaging/man/quorumd.8.md", "# UNHEALTHY MEMBERS", "contrib/docs/slow-disks.md"},
		{"README.md", "### When a disk is slow", "contrib/docs/slow-disks.md"},
	} {
		_, after, found := strings.Cut(all[c.in], "\n"+c.section+"\n")
		section, _, _ := strings.Cut(after, "\n#")
		shown := docs.Blocks(section)
		if !found || len(shown) == 0 {
			t.Errorf("%s has no output in %s", c.in, c.section)
		}
		for _, block := range shown {
			if !strings.Contains(all[c.page], block) {
				t.Errorf("%s shows output in %s that %s lacks:\n%s", c.in, c.section, c.page, block)
			}
		}
	}
}

func TestWordsSplitsLikeAShell(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`pause --reason "rack move" --for 2h    # no host`: "pause|--reason|rack move|--for|2h",
		`recover collect > n1.json`:                        "recover|collect",
		`cycle -- sh -c 'echo a; sleep 1'`:                 "cycle|--|sh|-c|echo a; sleep 1",
		`status; quorumctl health`:                         "status",
		`explain ''`:                                       "explain|",
	} {
		if got := strings.Join(docs.Words(line), "|"); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestCommandsAreDistinguishedFromOutput(t *testing.T) {
	t.Parallel()
	text := "Type\nquorumctl b\n\n    n1# quorumctl status  # a look\n    → quorumctl health\n" +
		"    $ S=1 bin/quorumctl operation show\n    quorumctl rollout start    20   1\n\n```sh\nquorumctl check\n```\n"
	want := []string{"status  # a look", "operation show", "check"}
	if got := docs.Typed(text); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
