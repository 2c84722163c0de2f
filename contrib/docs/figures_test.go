// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/policy/model"
)

var update = flag.Bool("update", false, "renew the computed figures, and the pages that quote each")

const figuresFile = "figures.yaml"

// figure is a number that pages quote.
type figure struct {
	Name     string         `yaml:"figure"`
	Value    string         `yaml:"value"`
	Computed string         `yaml:"computed,omitempty"` // where the value is computed from
	Measured *measurement   `yaml:"measured,omitempty,flow"`
	Quoted   []string       `yaml:"quoted"`          // patterns, with the number in parentheses
	Pages    map[string]int `yaml:"pages,omitempty"` // how many times each page quotes it
}

// measurement is a run that has printed a figure.
type measurement struct {
	Command string `yaml:"command"`
	Date    string `yaml:"date"`
}

// computedFigures returns the figures that are derived from the source.
func computedFigures(t *testing.T) map[string]string {
	t.Helper()
	source := func(pattern, file string) string {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		return string(found[1])
	}
	debian := map[string]string{"bookworm": "12", "trixie": "13"}
	rate := regexp.MustCompile(`(?m)^ *#?rate: (\d+)MiB$`).FindSubmatch(config.Default())
	if rate == nil {
		t.Fatal("the configuration has no backup.rate")
	}
	valueBits := source(`valueBytes += 128 << (\d+)`, "agent/cluster/page.go")
	if valueBits != "10" {
		t.Errorf("a record may have 128 << %s bytes", valueBits)
	}
	return map[string]string{
		"seeded mistakes that the model checker finds": strconv.Itoa(
			len(model.Mistakes()) + len(model.QuorumLossMistakes()) + len(model.RolloutMistakes())),
		"hours of a simulation":                     source(`-sim\.hours=\$\(or \$\(HOURS\),(\d+)\)`, "Makefile"),
		"oldest supported etcd 3.5":                 oldestSafe(5),
		"oldest supported etcd 3.6":                 oldestSafe(6),
		"newest tested etcd":                        newestTested(),
		"oldest supported Debian":                   debian[source(`\$\(PK\)/root: SUITE := (\w+)`, "Makefile")],
		"default of backup.rate, in MiB per second": string(rate[1]),
		"size of the largest record that quorumd reads, in KiB": source(`valueBytes += (\d+) << 10`,
			"agent/cluster/page.go"),
		"default duration of a maintenance, in hours": fmt.Sprint(int(control.DefaultMaintenance.Hours())),
		"default duration of a pause, in hours":       fmt.Sprint(int(control.DefaultPause.Hours())),
	}
}

func oldestSafe(minor int64) string {
	for patch := range int64(1000) {
		if v := (policy.Version{Major: 3, Minor: minor, Patch: patch}); v.Safe() {
			return v.String()
		}
	}
	return "none"
}

func newestTested() string {
	minor := int64(0)
	for v := (policy.Version{Major: 3}); v.Tested(); v.Minor++ {
		minor = v.Minor
	}
	return fmt.Sprintf("3.%d", minor)
}

// quotingPages returns the pages that may quote a figure, each joined into one line.
func quotingPages(t *testing.T) map[string]string {
	t.Helper()
	all := pages(t)
	for _, name := range []string{"CHANGELOG.md", ".github/CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	for name, text := range all {
		all[name] = strings.Join(strings.Fields(text), " ")
	}
	return all
}

// same reports whether a quote equals the value, rounded to the decimals of the quote.
func same(quote, value string) bool {
	quote = strings.NewReplacer(" ", "", ",", "").Replace(quote)
	q, err1 := strconv.ParseFloat(quote, 64)
	v, err2 := strconv.ParseFloat(value, 64)
	if err1 != nil || err2 != nil || strings.HasPrefix(value, "3.") {
		return quote == value // a version
	}
	_, decimals, _ := strings.Cut(quote, ".")
	unit := math.Pow10(len(decimals))
	return math.Round(v*unit) == math.Round(q*unit)
}

// quotes returns how many times each page quotes the figure, and the quotes that differ from its value.
func (f figure) quotes(all map[string]string) (counts map[string]int, wrong []string) {
	counts = map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, pattern := range f.Quoted {
			for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(all[name], -1) {
				counts[name]++
				if !same(found[1], f.Value) {
					wrong = append(wrong, fmt.Sprintf("%s: %q, but the figure is %s", name, found[0], f.Value))
				}
			}
		}
	}
	return counts, wrong
}

func readFigures(t *testing.T) (figures []figure, comment string) {
	t.Helper()
	text, err := os.ReadFile(figuresFile)
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&figures); err != nil {
		t.Fatal(err)
	}
	return figures, string(text[:bytes.Index(text, []byte("\n- "))+1])
}

func TestEveryPageQuotesTheSameFigure(t *testing.T) {
	t.Parallel()
	all, computed := quotingPages(t), computedFigures(t)
	figures, comment := readFigures(t)
	if *update {
		for i, f := range figures {
			if value, ok := computed[f.Name]; ok {
				figures[i].Value = value
			}
			figures[i].Pages, _ = f.quotes(all)
		}
		var b bytes.Buffer
		b.WriteString(comment)
		enc := yaml.NewEncoder(&b)
		enc.SetIndent(2)
		if err := enc.Encode(figures); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(figuresFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range figures {
		value, ok := computed[f.Name]
		delete(computed, f.Name)
		if ok != (f.Computed != "") || ok == (f.Measured != nil) {
			t.Errorf("%s: want either a source or a measurement", f.Name)
		}
		if ok && value != f.Value {
			t.Errorf("%s: %s has %s, %s has %s", f.Name, f.Computed, value, figuresFile, f.Value)
		}
		counts, wrong := f.quotes(all)
		for _, text := range wrong {
			t.Errorf("%s: %s", f.Name, text)
		}
		if len(counts) == 0 || !maps.Equal(counts, f.Pages) {
			t.Errorf("%s is quoted in %v, but %s has %v; to update it, run: go test ./contrib/docs -run Figure -update",
				f.Name, counts, figuresFile, f.Pages)
		}
	}
	for name := range computed {
		t.Errorf("%s is not in %s", name, figuresFile)
	}
	findsEveryChange(t, figures, all)
}

// findsEveryChange changes each quote of each figure, one at a time, and checks that the test reports the page.
func findsEveryChange(t *testing.T, figures []figure, all map[string]string) {
	t.Helper()
	n := 0
	for _, f := range figures {
		for name := range f.Pages {
			for _, pattern := range f.Quoted {
				for _, at := range regexp.MustCompile(pattern).FindAllStringSubmatchIndex(all[name], -1) {
					changed := maps.Clone(all)
					changed[name] = all[name][:at[2]] + "7" + all[name][at[2]:at[3]] + all[name][at[3]:]
					counts, wrong := f.quotes(changed)
					if len(wrong) == 0 && maps.Equal(counts, f.Pages) {
						t.Errorf("%s: a changed %q in %s is not found", f.Name, all[name][at[0]:at[1]], name)
					}
					n++
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d quotes were changed", n)
	}
}
