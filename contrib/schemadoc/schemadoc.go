// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package schemadoc generates JSON Schemas from Go types and from the comments in their sources. Tests compare the
// schemas of quorumctl and the OpenAPI document of the control socket with them. A schema allows unknown fields,
// because newer programs may add some.
package schemadoc

import (
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

const module = "github.com/quorumd/quorumd/"

// Reader generates schemas for the types of a checkout. It reads the sources of each package once.
type Reader struct {
	root     string
	comments map[string]map[string]string // comments by package, then by "type" or "type.field"
}

// NewReader returns a reader for the checkout at root.
func NewReader(root string) *Reader { return &Reader{root, map[string]map[string]string{}} }

// Schema returns the schema of a type, described by its comments.
func (r *Reader) Schema(of reflect.Type) (*jsonschema.Schema, error) {
	made, err := jsonschema.ForType(of, &jsonschema.ForOptions{TypeSchemas: marshalled()})
	if err != nil {
		return nil, err
	}
	return made, r.describe(made, of)
}

// Comment returns the comment of a type, or of one of its fields.
func (r *Reader) Comment(of reflect.Type, field string) (string, error) {
	comments, err := r.of(of.PkgPath())
	if field == "" {
		return comments[of.Name()], err
	}
	return comments[of.Name()+"."+field], err
}

// marshalled returns the schemas of the types that marshal themselves.
func marshalled() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Time]():        {Type: "string", Format: "date-time"},
		reflect.TypeFor[control.Duration](): {Type: "string"},
		reflect.TypeFor[health.State]():     {Type: "string"},
		reflect.TypeFor[record.MemberID]():  {Type: "string", Pattern: "^[0-9a-f]+$"},
	}
}

// describe copies the comments of a type into its schema, and allows additional fields.
func (r *Reader) describe(s *jsonschema.Schema, of reflect.Type) error {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if marshalled()[of] != nil {
		return nil
	}
	if of.Implements(reflect.TypeFor[json.Marshaler]()) || of.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return fmt.Errorf("%s marshals itself: add it to marshalled", of)
	}
	switch of.Kind() {
	case reflect.Slice, reflect.Array:
		return r.describe(s.Items, of.Elem())
	case reflect.Map:
		return r.describe(s.AdditionalProperties, of.Elem())
	case reflect.Struct:
		return r.describeStruct(s, of)
	}
	return nil
}

func (r *Reader) describeStruct(s *jsonschema.Schema, of reflect.Type) (err error) {
	s.AdditionalProperties = nil
	if s.Description == "" {
		if s.Description, err = r.Comment(of, ""); err != nil {
			return err
		}
	}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		property := s.Properties[name]
		if field.Anonymous || property == nil {
			continue
		}
		owner := of
		if n := len(field.Index); n > 1 {
			owner = of.FieldByIndex(field.Index[:n-1]).Type
		}
		if property.Description, err = r.Comment(owner, field.Name); err != nil {
			return err
		}
		if err := r.describe(property, field.Type); err != nil {
			return err
		}
	}
	return nil
}

// of returns the comments of a package.
func (r *Reader) of(pkg string) (map[string]string, error) {
	if comments, ok := r.comments[pkg]; ok {
		return comments, nil
	}
	dir, ok := strings.CutPrefix(pkg, module)
	if !ok {
		return nil, fmt.Errorf("cannot read the sources of %s: not in this module", pkg)
	}
	sources, err := filepath.Glob(filepath.Join(r.root, dir, "*.go"))
	if err != nil || len(sources) == 0 {
		return nil, fmt.Errorf("cannot read the sources of %s: %w", pkg, os.ErrNotExist)
	}
	comments := map[string]string{}
	for _, source := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if types, ok := decl.(*ast.GenDecl); ok && types.Tok == token.TYPE {
				readTypes(comments, types)
			}
		}
	}
	r.comments[pkg] = comments
	return comments, nil
}

func readTypes(comments map[string]string, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		made, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		comments[made.Name.Name] = oneLine(decl.Doc, made.Doc)
		body, ok := made.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range body.Fields.List {
			for _, name := range field.Names {
				comments[made.Name.Name+"."+name.Name] = oneLine(field.Doc, field.Comment)
			}
		}
	}
}

func oneLine(groups ...*ast.CommentGroup) string {
	var words []string
	for _, g := range groups {
		words = append(words, strings.Fields(g.Text())...)
	}
	return strings.Join(words, " ")
}
