// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package language

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the checkout, as seen from this package.
const root = "../.."

// recorded is the file with the number of banned words that are left.
const recorded = "counts.txt"

var update = flag.Bool("update", false, "lower the recorded counts to the current counts")

// banned lists what a text must not contain. A pattern matches whole words, in any case.
var banned = regexp.MustCompile(`(?i)\b(?:` + strings.Join([]string{
	"anew", "beside", "mend(?:s|ed|ing)?", "shall", "seldom", "whom", "whoever", "nobody", "somebody", "of late",
	"no more", "by the word of", "(?:go|goes|went|gone|going) on", "lies", "stands", "tells? whether", "gives", "told",
	"wish(?:es)?", "of which", "is to do", "gives? way", "gave way", "hands? over", "can lose", "newcomers?", "heirs?",
	"a person", "forwarders?", "verdicts?", "ails?", "of Nagios' kind", "the Nagios kind",
}, "|") + `)\b`)

// names matches the words that no identifier may contain.
var names = regexp.MustCompile(`^(?:anew|beside|mend|mended|shall|seldom|whom|whoever|nobody|somebody|told|wish|` +
	`wishes|heir|newcomer|ails|verdict|heard|forwarder|spared|fates|strayed)$`)

// camel splits an identifier into its words.
var camel = regexp.MustCompile(`[A-Z]+(?:[a-z0-9]+)?|[a-z0-9]+`)

// counts maps a place, such as "health comments" or "README.md", to the banned words in it.
type counts map[string][]string

// text adds the banned words of a text. It allows "no more than", which states a limit.
func (c counts) text(place, text string) {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "o more than", "ot over")
	for _, found := range banned.FindAllString(text, -1) {
		c[place] = append(c[place], strings.ToLower(found))
	}
}

// source adds the banned words of a Go file: those of its comments, of its strings, and of the names it declares.
func (c counts) source(t *testing.T, dir, file string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range parsed.Comments {
		c.text(dir+" comments", group.Text())
	}
	declares := func(idents ...*ast.Ident) {
		for _, ident := range idents {
			for _, word := range camel.FindAllString(ident.Name, -1) {
				if word = strings.ToLower(word); names.MatchString(word) {
					c[dir+" identifiers"] = append(c[dir+" identifiers"], word)
				}
			}
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			declares(n.Name)
		case *ast.TypeSpec:
			declares(n.Name)
		case *ast.ValueSpec:
			declares(n.Names...)
		case *ast.Field:
			declares(n.Names...)
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text, err := strconv.Unquote(n.Value)
				if err != nil {
					t.Fatal(err)
				}
				c.text(dir+" strings", text)
			}
		}
		return true
	})
}

// document reports whether a file is documentation, or contains output for users.
func document(name string) bool {
	if strings.Contains(name, "/testdata/") {
		return false // recorded output of programs, and golden files, which repeat strings of the code
	}
	return slices.Contains([]string{".md", ".yaml", ".yml", ".service", ".socket", ".timer", ".conf", ".rules"},
		path.Ext(name))
}

// read returns the banned words of the whole checkout. It skips this package, which has to name them, and the pages
// that teach the rules.
func read(t *testing.T) counts {
	t.Helper()
	found := counts{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case entry.IsDir() && (name == ".git" || name == ".cache" || name == "bin" || name == "dist" ||
			name == "contrib/language"):
			return fs.SkipDir
		case entry.IsDir(), name == ".github/CONTRIBUTING.md", name == "contrib/docs/glossary.md":
		case strings.HasSuffix(name, ".go"):
			dir := path.Dir(name)
			if strings.HasSuffix(name, "_test.go") {
				dir += " tests"
			}
			found.source(t, dir, file)
		case document(name):
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			found.text(name, string(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// allowed returns the recorded counts.
func allowed(t *testing.T) map[string]int {
	t.Helper()
	file, err := os.Open(recorded)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	list := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		place, count, ok := strings.Cut(lines.Text(), "\t")
		n, err := strconv.Atoi(count)
		if !ok || err != nil || n <= 0 || list[place] > 0 {
			t.Fatalf("%s: %q: want a place, a tab and a count above 0, each place once", recorded, lines.Text())
		}
		list[place] = n
	}
	return list
}

func TestNoTextUsesMoreBannedWordsThanBefore(t *testing.T) {
	t.Parallel()
	found := read(t)
	if *update {
		write(t, found)
	}
	limits := allowed(t)
	for _, place := range slices.Sorted(maps.Keys(found)) {
		if words := found[place]; len(words) > limits[place] {
			t.Errorf("%s: %d banned words, at most %d are allowed: %s; see .github/CONTRIBUTING.md", place, len(words),
				limits[place], most(words))
		}
	}
}

func TestEveryRecordedPlaceExists(t *testing.T) {
	t.Parallel()
	for place := range allowed(t) {
		name, _, _ := strings.Cut(place, " ")
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("%s: %s is gone: remove the line", recorded, place)
		}
	}
}

func TestBannedWordsAreFound(t *testing.T) {
	t.Parallel()
	c := counts{}
	c.text("x", "Nobody is told whose disk lies\nbeside; it goes\n on no more")
	want := []string{"nobody", "told", "lies", "beside", "goes on", "no more"}
	if !slices.Equal(c["x"], want) {
		t.Errorf("found %q, want %q", c["x"], want)
	}
	file := filepath.Join(t.TempDir(), "x.go")
	code := "package x\n\n// f gives nothing.\nfunc wishTold(ails int) string { return \"mend it\" }\n"
	if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	c.source(t, "y", file)
	if len(c["y comments"]) != 1 || len(c["y strings"]) != 1 || len(c["y identifiers"]) != 3 {
		t.Errorf("found %v", c)
	}
}

// most returns the words with the number of their occurrences, the most frequent first.
func most(words []string) string {
	times := map[string]int{}
	for _, w := range words {
		times[w]++
	}
	distinct := slices.SortedFunc(maps.Keys(times), func(a, b string) int {
		return cmp.Or(cmp.Compare(times[b], times[a]), strings.Compare(a, b))
	})
	for i, w := range distinct {
		distinct[i] = fmt.Sprintf("%s ×%d", w, times[w])
	}
	return strings.Join(distinct, ", ")
}

// write records the counts, and raises no count recorded before.
func write(t *testing.T, found counts) {
	t.Helper()
	before := map[string]int{}
	if _, err := os.Stat(recorded); err == nil {
		before = allowed(t)
	}
	var text strings.Builder
	for _, place := range slices.Sorted(maps.Keys(found)) {
		n := len(found[place])
		if len(before) > 0 {
			n = min(n, before[place])
		}
		if n > 0 {
			fmt.Fprintf(&text, "%s\t%d\n", place, n)
		}
	}
	if err := os.WriteFile(recorded, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
