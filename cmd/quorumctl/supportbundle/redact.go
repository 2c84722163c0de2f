// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// removed replaces a secret.
const removed = "[removed]"

// shortest is the minimum length of a value that is removed everywhere. Shorter values may be part of harmless words.
const shortest = 6

// Redactor removes secrets from texts: known values, and text that looks like a secret because of its format (private
// keys, age identities, access keys, tokens, passwords in URLs) or the name before it.
type Redactor struct {
	values []string // longest first, because a value may contain a shorter one
}

// NewRedactor returns a Redactor for the contents of secret files. Every line in them except headers and comments, and
// every value after an equals sign, is a secret, unless it is shorter than shortest.
func NewRedactor(secrets ...[]byte) *Redactor {
	r := &Redactor{}
	for _, text := range secrets {
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			_, value, has := strings.Cut(line, "=")
			if value = strings.Trim(strings.TrimSpace(value), `"'`); has && len(value) >= shortest {
				r.values = append(r.values, value)
			}
			isTitle := strings.HasPrefix(line, "#") || strings.HasPrefix(line, "-----") || strings.HasPrefix(line, "[")
			if len(line) >= shortest && !isTitle {
				r.values = append(r.values, line)
			}
		}
	}
	slices.SortFunc(r.values, func(a, b string) int { return len(b) - len(a) })
	return r
}

// shape is the pattern of a secret and its replacement. A text without the hint cannot match the pattern.
type shape struct {
	hint    string // lower case
	pattern *regexp.Regexp
	with    string
}

func shapes() []shape {
	return []shape{
		{
			"private key-----", regexp.MustCompile(
				`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), removed,
		},
		{ // a private key whose beginning was cut off
			"private key-----", regexp.MustCompile(`(?s)\A.*?-----END [A-Z0-9 ]*PRIVATE KEY-----`), removed,
		},
		{"age-secret-key-", regexp.MustCompile(`(?i)AGE-SECRET-KEY-[0-9A-Z-]+`), removed},
		{"akia", regexp.MustCompile(`\bAKIA[0-9A-Z]{12,}\b`), removed},
		{"asia", regexp.MustCompile(`\bASIA[0-9A-Z]{12,}\b`), removed},
		{"eyj", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`), removed},
		{"$2", regexp.MustCompile(`\$2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53}`), removed},
		{"@", regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s@"']+@`), "${1}" + removed + "@"},
		{"bearer ", regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{6,}`), "${1}" + removed},
		{
			"private key block", regexp.MustCompile(
				`(?s)-----BEGIN PGP PRIVATE KEY BLOCK-----.*?(?:-----END PGP PRIVATE KEY BLOCK-----|\z)`), removed,
		},
		{ // tokens with a prefix that identifies their service: GitHub, GitLab, Slack, Vault, npm, Stripe
			"", regexp.MustCompile(`\b(?:gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|` +
				`xox[a-z]-[A-Za-z0-9-]{10,}|hv[sbr]\.[\w-]{20,}|npm_[A-Za-z0-9]{20,}|[rs]k_live_[A-Za-z0-9]{16,})`), removed,
		},
		{"aiza", regexp.MustCompile(`\bAIza[\w-]{30,}`), removed},
		{"hooks.", regexp.MustCompile(`(https://hooks\.[a-z0-9.-]+/)[^\s"']+`), "${1}" + removed},
		{"$", regexp.MustCompile(`\$(?:1|5|6|7|y|apr1|argon2(?:id|i|d)|scrypt)\$[^\s:"']{8,}`), removed}, // /etc/shadow
		// etcdctl --user root:password, curl -u root:password
		{"u", regexp.MustCompile(`((?:\s|^|")(?:--user|-u|ETCDCTL_USER)[\s=]+["']?[\w.@-]+:)[^\s"'\[]+`), "${1}" + removed},
		{"basic ", regexp.MustCompile(`(?i)(\bbasic\s+)[A-Za-z0-9._~+/=-]{6,}`), "${1}" + removed},
	}
}

// names returns the parts of names, in lower case, that mark a value as a secret.
func names() []string {
	return []string{
		"password", "passwd", "passphrase", "secret", "token", "credential", "apikey", "api_key", "api-key",
		"access_key", "access-key", "accesskey", "private_key", "private-key", "privatekey", "auth", "cookie",
		"identit", "signature", "webhook", "otp",
	}
}

// named returns a pattern for a value after one of these names: name=value, name: value, "name": "value", --name value.
func named() *regexp.Regexp {
	one := "(?:" + strings.Join(names(), "|") + ")"
	return regexp.MustCompile(`(?i)([\w.-]*` + one + `[\w.-]*["']?\s*[:=]\s*|--?[\w-]*` + one + `[\w-]*\s+)` +
		`("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,;}\]"'&]+)`)
}

// WithoutComments returns a YAML text without its comments, which may contain private notes. Line numbers do not
// change. The input may be invalid YAML. From an ambiguous line, too much is removed rather than too little.
func WithoutComments(text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		body, end := bytes.TrimRight(line, "\r\n"), line[len(bytes.TrimRight(line, "\r\n")):]
		if at := commentIn(body); at >= 0 {
			body = bytes.TrimRight(body[:at], " \t")
		}
		out = append(append(out, body...), end...)
	}
	return out
}

// commentIn returns the index of the comment in a line, or -1. A comment begins at an unquoted # that begins a word.
func commentIn(line []byte) int {
	var quote byte
	first, closed := -1, -1 // index of the first quoted # that begins a word, and of the last closing quote
	for i, c := range line {
		begins := i == 0 || bytes.IndexByte([]byte(" \t[{,:"), line[i-1]) >= 0
		switch {
		case c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			if quote == 0 {
				return i
			}
			if first < 0 {
				first = i
			}
		case quote == 0 && (begins || c == '\'' && closed == i-1) && (c == '"' || c == '\''): // '' is an escaped '
			quote = c
		case c == quote && (c == '\'' || line[i-1] != '\\'):
			quote, closed = 0, i
		}
	}
	if quote != 0 { // the quote is not closed, so its extent is unknown
		return first
	}
	return -1
}

// Clean returns a text without its secrets, and the number of secrets removed.
func (r *Redactor) Clean(text []byte) (clean []byte, count int) {
	for _, value := range r.values {
		if n := bytes.Count(text, []byte(value)); n > 0 {
			text, count = bytes.ReplaceAll(text, []byte(value), []byte(removed)), count+n
		}
	}
	small := bytes.ToLower(text)
	for _, s := range shapes() {
		if bytes.Contains(small, []byte(s.hint)) {
			count += len(s.pattern.FindAllIndex(text, -1))
			text = s.pattern.ReplaceAll(text, []byte(s.with))
		}
	}
	var out bytes.Buffer
	pattern, all := named(), names()
	for line := range bytes.Lines(text) {
		small := string(bytes.ToLower(line))
		if !slices.ContainsFunc(all, func(name string) bool { return strings.Contains(small, name) }) {
			out.Write(line)
			continue
		}
		out.Write(pattern.ReplaceAllFunc(line, func(found []byte) []byte {
			clean := cleanNamed(pattern, found)
			if !bytes.Equal(clean, found) {
				count++
			}
			return clean
		}))
	}
	return out.Bytes(), count
}

// cleanNamed removes the value after a name.
func cleanNamed(pattern *regexp.Regexp, found []byte) []byte {
	groups := pattern.FindSubmatch(found)
	name, value := groups[1], groups[2]
	if harmless(string(name), string(value)) {
		return found
	}
	quote := ""
	if value[0] == '"' || value[0] == '\'' {
		quote = string(value[0])
	}
	return append(bytes.Clone(name), quote+removed+quote...)
}

// harmless reports whether a value is not a secret although its name suggests one: an empty or removed value, a
// boolean, null, none, a path if the name ends in file or dir, or a number if the name is token.
func harmless(name, value string) bool {
	value = strings.Trim(value, `"'`)
	key := strings.ToLower(strings.TrimRight(name, " \t\n=:\"'"))
	switch {
	case strings.HasPrefix(removed, value), slices.Contains([]string{"true", "false", "null", "none"}, value):
		return true
	case strings.HasPrefix(value, "/"): // harmless only if the key expects a path
		return strings.HasSuffix(key, "file") || strings.HasSuffix(key, "dir")
	case key == "token": // harmless if it is a number: a fencing token or a count
		return strings.Trim(value, "0123456789") == ""
	}
	return false
}
