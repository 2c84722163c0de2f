// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"filippo.io/age"

	"github.com/quorumd/quorumd/agent/socketpath"
	"github.com/quorumd/quorumd/agent/window"
)

// format is the format of a string, declared with an "is" tag.
type format struct {
	kind  string // for messages, as in "must be an absolute path"
	parse func(s string) (canonical string, err error)
}

// checked returns a parse function that checks a text and returns it unchanged.
func checked(check func(string) error) func(string) (string, error) {
	return func(s string) (string, error) { return s, check(s) }
}

// formats lists the formats by name. A string with the empty format has a few allowed values, which checkNotation
// checks.
var formats = map[string]format{
	"":     {"", checked(func(string) error { return nil })},
	"id":   {"a name of lowercase letters, digits, dots and dashes", checked(checkID)},
	"name": {"a name of letters, digits, dots, dashes and underscores", checked(checkName)},
	"hex":  {"a hexadecimal number", parseHex},
	"url":  {"a URL such as https://192.0.2.1:2379", func(s string) (string, error) { return parseURL(s, false) }},
	"listenURL": {
		"a URL such as https://192.0.2.1:2379",
		func(s string) (string, error) { return parseURL(s, true) },
	},
	"listenURLs": {
		"a URL such as https://192.0.2.1:2379",
		parseListenURLs,
	},
	"path":     {"an absolute path", parsePath},
	"socket":   {"an absolute path", parseSocket},
	"hostport": {"an address such as 127.0.0.1:9379 or :9379", checked(checkHostPort)},
	"loopback": {"a loopback address such as 127.0.0.1:9380", checked(checkLoopback)},
	"namedURL": {"a name and a URL such as n1=http://192.0.2.1:9381", checked(checkBootstrapHost)},
	"network":  {"a network such as 192.0.2.0/24 or 192.0.2.7", parseNetwork},
	"window":   {"a window such as \"Mon..Fri 02:00-04:00 Europe/Berlin\"", checked(checkWindow)},
	"blackout": {"a date or range such as 2026-12-24 or 12-20..01-06", checked(checkBlackout)},
	"unit":     {"a unit name such as etcd.service", checked(checkUnit)},
	"group":    {"a group name", checked(checkGroup)},
	"check":    {"a name such as check_raid", checked(checkProgram)},
	"recipient": {
		"an age recipient such as age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
		checked(checkRecipient),
	},
}

// format returns the format of a key that is a string or a list of strings.
func (k key) format() format { return formats[k.tag("is")] }

// kind describes the values that a key accepts, as in "must be a duration".
func (k key) kind() string {
	if allowed := strings.Fields(k.tag("oneOf")); len(allowed) > 0 {
		return orList(allowed)
	}
	switch reflect.Zero(k.field.Type).Interface().(type) {
	case time.Duration:
		return "a duration such as 2s"
	case Grace:
		return "off or a duration such as 10m"
	case Size:
		return "a size such as 512MiB"
	case bool:
		return "true or false"
	case int:
		return "a number of " + k.tag("unit")
	case []string:
		return "a list, each entry " + k.format().kind
	case map[string]string:
		return "variables and values"
	}
	return k.format().kind
}

// listOf returns the entries of a list in a tag.
func listOf(tag string) []string {
	var entries []string
	for entry := range strings.SplitSeq(tag, ";") {
		if entry = strings.TrimSpace(entry); entry != "" {
			entries = append(entries, entry)
		}
	}
	return entries
}

// example returns the key with a value, on one line.
func (k key) example() string {
	value := k.tag("example")
	if k.field.Type.Kind() == reflect.Slice {
		entries := append(listOf(value), listOf(k.tag("default"))...)
		if len(entries) == 0 {
			_, sample, _ := strings.Cut(k.format().kind, " such as ")
			entries = strings.Fields(sample)
		}
		value = "[" + entries[0] + "]"
	}
	return k.name + ": " + value
}

func checkWindow(s string) error {
	_, err := window.ParseWindow(s)
	return err
}

func checkBlackout(s string) error {
	_, err := window.ParseBlackout(s)
	return err
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// checkID accepts ^[a-z0-9][a-z0-9.-]{0,62}$, which is safe in an etcd key and in a host name.
func checkID(s string) error {
	if s == "" || len(s) > 63 || strings.ContainsFunc(s, func(r rune) bool {
		return (!isAlphanumeric(r) || unicode.IsUpper(r)) && r != '.' && r != '-'
	}) || s[0] == '.' || s[0] == '-' {
		return fmt.Errorf("must be 1 to 63 lowercase letters, digits, dots and dashes, beginning with a letter or "+
			"digit, not %s", quote(s))
	}
	return nil
}

// checkName accepts ^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$, which is safe in ETCD_INITIAL_CLUSTER and in a table.
func checkName(s string) error {
	if s == "" || len(s) > 63 || strings.ContainsFunc(s, func(r rune) bool {
		return !isAlphanumeric(r) && r != '.' && r != '-' && r != '_'
	}) || !isAlphanumeric(rune(s[0])) {
		return fmt.Errorf("must be 1 to 63 letters, digits, dots, dashes and underscores, beginning with a letter or "+
			"digit, not %s", quote(s))
	}
	return nil
}

// checkProgram accepts the name of a program in checks.dir.
func checkProgram(s string) error {
	if len(s) > 32 || strings.Contains(s, ".") || checkName(s) != nil {
		return fmt.Errorf("must be 1 to 32 letters, digits, dashes and underscores, beginning with a letter or digit, "+
			"not %s", quote(s))
	}
	return nil
}

// checkRecipient accepts an age public key.
func checkRecipient(s string) error {
	if all, err := age.ParseRecipients(strings.NewReader(s)); err != nil || len(all) != 1 {
		return fmt.Errorf("must be an age recipient, beginning with age1, not %s; age-keygen -y FILE prints one",
			quote(s))
	}
	return nil
}

// parseHex accepts a 64-bit number in hexadecimal and returns it as etcd prints it.
func parseHex(s string) (string, error) {
	value, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	if err != nil || value == 0 {
		return "", fmt.Errorf("must be a hexadecimal number of 1 to 16 digits, such as cdf818194e3a8c32, not %s",
			quote(s))
	}
	return strconv.FormatUint(value, 16), nil
}

// parsePath accepts an absolute path and cleans it.
func parsePath(s string) (string, error) {
	clean := filepath.Clean(s)
	switch {
	case !filepath.IsAbs(s):
		return "", fmt.Errorf("must be an absolute path, beginning with /, not %s", quote(s))
	case clean == "/":
		return "", errors.New("must not be the root directory; choose a path below it")
	}
	return clean, nil
}

// parseSocket accepts the path of a unix socket and cleans it.
func parseSocket(s string) (string, error) {
	if name := filepath.Base(s); len(name) > socketpath.MaxName {
		return "", fmt.Errorf("the socket's file name may have at most %d bytes, not %d; choose a shorter one",
			socketpath.MaxName, len(name))
	}
	return parsePath(s)
}

// checkUnit accepts the name of a systemd service (systemd.unit(5): at most 255 letters, digits and characters of
// :-_.\@).
func checkUnit(s string) error {
	name, ok := strings.CutSuffix(s, ".service")
	if !ok || name == "" || len(s) > 255 || strings.ContainsFunc(name, func(r rune) bool {
		return !isAlphanumeric(r) && !strings.ContainsRune(`:-_.\@`, r)
	}) {
		return fmt.Errorf("must be the name of a systemd service, such as etcd.service, not %s", quote(s))
	}
	return nil
}

func checkGroup(s string) error {
	if len(s) > 32 || strings.ContainsFunc(s, func(r rune) bool {
		return !isAlphanumeric(r) && r != '.' && r != '-' && r != '_'
	}) || s[0] == '-' {
		return fmt.Errorf("must be the name of a group, not %s", quote(s))
	}
	return nil
}

func checkPrintable(s string) error {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("must be one line without control characters, not %s", quote(s))
	}
	return nil
}

func checkHostPort(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil || strings.Contains(s, "/") {
		return fmt.Errorf("must be an address and a port, such as 127.0.0.1:9379 or :9379, not %s", quote(s))
	}
	if host != "" {
		if err := checkHost(host); err != nil {
			return err
		}
	}
	return checkPort(port)
}

// checkLoopback accepts a host and port that only this machine can reach.
func checkLoopback(s string) error {
	if err := checkHostPort(s); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(s)
	if isLoopback(host) {
		return nil
	}
	return fmt.Errorf("must be a loopback address, such as 127.0.0.1:9380, not %s, so that other machines "+
		"cannot connect", quote(s))
}

// parseNetwork accepts a network or one address, and returns a network.
func parseNetwork(s string) (string, error) {
	text := s
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		text = fmt.Sprintf("%s/%d", addr, addr.BitLen())
	}
	network, err := netip.ParsePrefix(text)
	if err != nil || network.Addr().Is4In6() {
		return "", fmt.Errorf("must be a network such as 192.0.2.0/24, or an address, not %s", quote(s))
	}
	if network != network.Masked() {
		return "", fmt.Errorf("must be a network such as %s, or the address %s alone, not %s", network.Masked(),
			network.Addr(), quote(s))
	}
	return network.String(), nil
}

func checkPort(port string) error {
	number, err := strconv.Atoi(port)
	if err != nil || number < 1 || number > 65535 || strconv.Itoa(number) != port {
		return fmt.Errorf("must have a port from 1 to 65535, not %s", quote(port))
	}
	return nil
}

// checkHost accepts an IP address or a host name.
func checkHost(host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
			return !isAlphanumeric(r) && r != '-' && r != '_'
		}) {
			return fmt.Errorf("must have an IP address or a host name, not %s", quote(host))
		}
	}
	if _, err := strconv.Atoi(labels[len(labels)-1]); err == nil {
		return fmt.Errorf("must have an IP address or a host name; %s is neither", quote(host))
	}
	return nil
}

// parseURL accepts scheme, host and port only. An address to listen on may be unspecified (0.0.0.0), but must be an IP
// address or localhost, as etcd requires. An advertised address may be a name, but must not be unspecified.
func parseURL(s string, listen bool) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", fmt.Errorf("%s is not a valid URL; write http or https, a host and a port, such as "+
			"https://192.0.2.1:2379", quote(s))
	case u.User != nil:
		return "", errors.New("must not have a user name in the URL; remove the part before the @")
	case u.Path != "" || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(s, "?#"):
		return "", fmt.Errorf("%s must end after the port; write %s://%s", quote(s), u.Scheme, shorten(u.Host, 60))
	case u.Hostname() == "":
		return "", fmt.Errorf("%s has no host; write an address before the port", quote(s))
	case u.Port() == "":
		return "", fmt.Errorf("%s has no port; add the port, such as :2379", quote(s))
	}
	if err := checkPort(u.Port()); err != nil {
		return "", err
	}
	if err := checkHost(u.Hostname()); err != nil {
		return "", err
	}
	addr, notIP := netip.ParseAddr(u.Hostname())
	switch {
	case listen && notIP != nil && u.Hostname() != "localhost":
		return "", errors.New(listenNeedsIP(s))
	case !listen && notIP == nil && addr.IsUnspecified():
		return "", fmt.Errorf("other hosts cannot connect to %s; use the address of the host", quote(s))
	}
	u.Host = strings.ToLower(u.Host)
	return u.String(), nil
}

// parseListenURLs accepts a URL, or the http and the https URL of one address: etcd serves both on one port.
func parseListenURLs(s string) (string, error) {
	first, second, both := strings.Cut(s, ",")
	one, err := parseURL(first, true)
	if err != nil || !both {
		return one, err
	}
	two, err := parseURL(second, true)
	switch {
	case err != nil:
		return "", err
	case scheme(one) == scheme(two) || address(one) != address(two):
		return "", fmt.Errorf("%s must be one URL, or the http and the https URL of the same address", quote(s))
	}
	return one + "," + two, nil
}

func listenNeedsIP(s string) string {
	return fmt.Sprintf("etcd listens only on IP addresses and localhost, not on the name in %s; write the IP "+
		"address, or 0.0.0.0 for all", quote(s))
}

// checkVariable accepts the name of an etcd variable that the operator may set.
func checkVariable(name string) error {
	rest, ok := strings.CutPrefix(name, "ETCD_")
	if !ok || rest == "" || strings.ContainsFunc(rest, func(r rune) bool {
		return (!isAlphanumeric(r) || unicode.IsLower(r)) && r != '_'
	}) {
		return errors.New("must be the name of an etcd variable: ETCD_ followed by A-Z, 0-9 and _")
	}
	own := map[string]string{
		"ETCD_NAME": "host.name", "ETCD_DATA_DIR": "etcd.dataDir", "ETCD_WAL_DIR": "etcd.walDir",
		"ETCD_INITIAL_ADVERTISE_PEER_URLS": "etcd.peerURL", "ETCD_ADVERTISE_CLIENT_URLS": "etcd.clientURL",
		"ETCD_LISTEN_PEER_URLS": "etcd.listenPeerURL", "ETCD_LISTEN_CLIENT_URLS": "etcd.listenClientURL",
		"ETCD_LISTEN_METRICS_URLS": "etcd.metricsURL",
	}
	computed := []string{
		"ETCD_INITIAL_CLUSTER", "ETCD_INITIAL_CLUSTER_STATE", "ETCD_INITIAL_CLUSTER_TOKEN",
		"ETCD_FORCE_NEW_CLUSTER",
	}
	switch {
	case own[name] != "":
		return errors.New("quorumd sets this variable from " + own[name] + "; remove it and use that key")
	case slices.Contains(computed, name):
		return errors.New("quorumd sets this variable itself when the member joins; remove it")
	case name == "ETCD_CONFIG_FILE":
		return errors.New("with a configuration file etcd ignores all variables, including quorumd's; remove it " +
			"and set variables")
	case strings.HasPrefix(name, "ETCD_DISCOVERY"):
		return errors.New("etcd refuses discovery together with the initial cluster that quorumd sets; remove it")
	}
	return nil
}
