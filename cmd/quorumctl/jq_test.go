// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"

	"github.com/quorumd/quorumd/agent/control"
)

// TestEveryJQExpressionInTheDocumentsFindsAValue evaluates each expression on the documents of several clusters,
// because some fields exist only in some states. A field that does not exist is null, which counts as no value.
func TestEveryJQExpressionInTheDocumentsFindsAValue(t *testing.T) {
	t.Parallel()
	piped := regexp.MustCompile("`quorumctl ([^`|\\\\]+ -o json) \\\\?\\| jq (?:-[a-z] )?('[^`]+'|\\.\\S+)`")
	saved := time.Date(2026, 11, 20, 4, 0, 0, 5000, time.UTC)
	var sockets []string
	for _, name := range []string{"steady", "voter-down", "joining", "slow"} {
		d := scene(t, name)
		d.status.Backup = &control.Backup{Saved: &saved, Revision: 4711, Host: "n4"}
		socket, _ := serve(t, d)
		sockets = append(sockets, socket)
	}
	found := 0
	for name, text := range allPages(t) {
		for _, match := range piped.FindAllStringSubmatch(text, -1) {
			found++
			expression := strings.Trim(strings.ReplaceAll(match[2], `\|`, "|"), "'")
			if !hasValue(t, sockets, splitLine(match[1]), expression) {
				t.Errorf("%s: quorumctl %s | jq '%s' finds no value", name, match[1], expression)
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d expressions were found", found)
	}
}

// hasValue reports whether the expression has a value for the output of the command on one of the hosts.
func hasValue(t *testing.T, sockets, command []string, expression string) bool {
	t.Helper()
	query, err := gojq.Parse(expression)
	if err != nil {
		t.Errorf("%s: %v", expression, err)
		return true
	}
	for _, socket := range sockets {
		var document any
		if err := json.Unmarshal([]byte(quorumctl(t, socket, command...).stdout), &document); err != nil {
			t.Fatal(err)
		}
		values := query.RunWithContext(t.Context(), document)
		for value, more := values.Next(); more; value, more = values.Next() {
			if err, failed := value.(error); failed {
				t.Errorf("%s: %v", expression, err)
				return true
			}
			if value != nil && value != "" {
				return true
			}
		}
	}
	return false
}
