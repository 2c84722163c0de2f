// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestDefaultFileMatchesTheStructs(t *testing.T) {
	t.Parallel()
	golden(t, "quorumd.yaml", generateDefault(t))
}

func TestDefaultFileHasTheDefaults(t *testing.T) {
	t.Parallel()
	c, err := parse("quorumd.yaml", Default(), n1)
	if err != nil {
		t.Fatal(err)
	}
	bare := `
cluster:
  name: prod
  endpoints: ["http://192.0.2.1:2379", "http://192.0.2.2:2379", "http://192.0.2.3:2379"]
etcd:
  clientURL: http://192.0.2.1:2379
  peerURL: http://192.0.2.1:2380
`
	want, err := parse("bare.yaml", []byte(bare), n1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("the default file sets something (-without it +with it):\n%s", diff)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("the default file has warnings: %q", c.Warnings)
	}
}

func TestDefaultFileHasEveryKeyWithItsDefault(t *testing.T) {
	t.Parallel()
	// uncommenting every key also configures TLS, which requires https URLs
	all := strings.ReplaceAll(uncommented(string(Default())), ": http://192.0.2.1:", ": https://192.0.2.1:")
	all = strings.ReplaceAll(all, "- http:", "- https:")
	c, err := parse("all.yaml", []byte(all), n1)
	if err != nil {
		t.Fatal(err)
	}
	files := TLS{CA: "/etc/quorumd/tls/ca.crt", Cert: "/etc/quorumd/tls/client.crt", Key: "/etc/quorumd/tls/client.key"}
	want, err := parse("quorumd.yaml", Default(), n1)
	if err != nil {
		t.Fatal(err)
	}
	want.Cluster.TLS, want.Cluster.Endpoints = &files, c.Cluster.Endpoints
	want.Backup.Store.S3 = &S3{
		Endpoint: "https://s3.example.com:443", Bucket: "etcd-snapshots",
		CredentialsFile: "/etc/quorumd/s3-credentials",
	}
	want.Etcd.ClientURL, want.Etcd.ListenClientURL, want.Warnings = c.Etcd.ClientURL, c.Etcd.ListenClientURL, c.Warnings
	want.Etcd.PeerURL, want.Etcd.ListenPeerURL = c.Etcd.PeerURL, c.Etcd.ListenPeerURL
	want.Etcd.TLS = &EtcdTLS{
		CA: files.CA, Cert: "/etc/quorumd/tls/server.crt", Key: "/etc/quorumd/tls/server.key",
		PeerCA: "/etc/quorumd/tls/peer-ca.crt", PeerCert: "/etc/quorumd/tls/peer.crt",
		PeerKey: "/etc/quorumd/tls/peer.key",
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("a value shown in a comment is not the default (-default +shown):\n%s", diff)
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(all), &root); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	collectPaths(root.Content[0], "", shown)
	for _, k := range allKeys(reflect.TypeFor[Config](), "") {
		if !shown[k.path] {
			t.Errorf("%s is not in the default file", k.path)
		}
	}
}

// uncommented sets every key that the default file has in a comment: #key, without a space after the mark.
func uncommented(file string) string {
	return regexp.MustCompile(`(?m)^( *)#([a-zA-Z])`).ReplaceAllString(file, "$1$2")
}

func collectPaths(n *yaml.Node, path string, into map[string]bool) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for name, value := range entries(n) {
		into[join(path, name.Value)] = true
		collectPaths(value, join(path, name.Value), into)
	}
}

// generateDefault generates the default file from the files that declare the sections.
func generateDefault(t *testing.T) string {
	t.Helper()
	g := generator{t: t, docs: map[string]string{}}
	for _, name := range []string{"keys.go", "keys_etcd.go", "keys_backup.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, g.collect)
	}
	g.WriteString("# Reference of all keys in the configuration of quorumd.\n#\n" +
		"# #key shows the default of a key: remove the # to change it.\n" +
		"# Brackets show type and default. A duration is a number with a unit (ms, s, m, h, d), such as 300ms or " +
		"1h30m;\n" +
		"# a size is a whole number with a unit (B, KiB, MiB, GiB, TiB), such as 512MiB.\n" +
		"# After a change: quorumctl config check && systemctl reload quorumd\n")
	g.section(reflect.TypeFor[Config](), "")
	return g.String()
}

type generator struct {
	strings.Builder
	t    *testing.T
	docs map[string]string // "Timing.LockTTL" -> its comment
}

// collect keeps the comments of the fields of a struct type.
func (g *generator) collect(n ast.Node) bool {
	spec, ok := n.(*ast.TypeSpec)
	if !ok {
		return true
	}
	if fields, ok := spec.Type.(*ast.StructType); ok {
		for _, field := range fields.Fields.List {
			g.docs[spec.Name.Name+"."+field.Names[0].Name] = field.Doc.Text()
		}
	}
	return false
}

// section writes the keys of a struct type.
func (g *generator) section(section reflect.Type, indent string) {
	for i, k := range keysOf(section, "") {
		doc := strings.TrimSpace(g.docs[section.Name()+"."+k.field.Name])
		if doc == "" {
			g.t.Errorf("%s.%s has no comment; it is the documentation of the key", section.Name(), k.field.Name)
		}
		if i > 0 || indent == "" {
			g.WriteString("\n")
		}
		for line := range strings.Lines(doc) {
			g.WriteString(indent + "# " + strings.TrimSuffix(line, "\n") + "\n")
		}
		if sub, ok := k.section(); ok {
			mark := "" // "#" for an optional section, which is commented out
			if k.optional() {
				mark = "#"
			}
			g.WriteString(indent + mark + k.name + ":\n")
			g.section(sub, indent+"  ")
			continue
		}
		g.WriteString(indent + "# " + kindAndDefault(k) + "\n")
		g.key(k, indent, k.tag("required") != "")
	}
}

// kindAndDefault returns in brackets what a key takes, and its default.
func kindAndDefault(k key) string {
	kind, _, _ := strings.Cut(k.kind(), " as in")
	kind = strings.TrimPrefix(strings.TrimPrefix(kind, "a "), "an ")
	if k.tag("max") != "" {
		kind = fmt.Sprintf("%s to %s %s", k.tag("min"), k.tag("max"), k.tag("unit"))
	}
	value, hasDefault := k.field.Tag.Lookup("default")
	switch {
	case k.tag("required") != "":
		return "[" + kind + "; required]"
	case k.tag("derived") != "":
		return "[" + kind + "; default: " + k.tag("derived") + "]"
	case hasDefault && (value == "" || value == "{}"):
		return "[" + kind + "; default: empty]"
	}
	return "[" + kind + "; default: " + value + "]"
}

// key writes the key with its default or example, commented out unless set.
func (g *generator) key(k key, indent string, set bool) {
	value := k.tag("default")
	if value == "" {
		value = k.tag("example")
	}
	mark := "#"
	if set {
		mark = ""
	}
	if k.field.Type.Kind() == reflect.Slice {
		if !set {
			var quoted []string
			for _, entry := range listOf(value) {
				quoted = append(quoted, strconv.Quote(entry))
			}
			fmt.Fprintf(g, "%s#%s: [%s]\n", indent, k.name, strings.Join(quoted, ", "))
			return
		}
		fmt.Fprintf(g, "%s%s:\n", indent, k.name)
		for _, entry := range listOf(value) {
			fmt.Fprintf(g, "%s  - %s\n", indent, entry)
		}
		return
	}
	if value == "" || strings.HasPrefix(value, ":") {
		value = `"` + value + `"`
	}
	fmt.Fprintf(g, "%s%s%s: %s\n", indent, mark, k.name, value)
}
