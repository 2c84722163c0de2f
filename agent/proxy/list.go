// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// FileName is the list's file name in quorumd's runtime directory.
const FileName = "voters.json"

// The limits and the version of a list. A cluster has at most nine voters.
const (
	MaxListSize = 64 << 10 // bytes
	maxVoters   = 64
	maxText     = 300 // bytes of a name, an address or a reason
	version     = 1
)

// List is the agent's list of voters for the proxy.
type List struct {
	Version  int     `json:"version"`
	Cluster  string  `json:"cluster"`  // ID of the cluster, hexadecimal
	Revision int64   `json:"revision"` // etcd's revision when the agent read the voters
	Voters   []Voter `json:"voters"`
}

// Voter is one entry of a list.
type Voter struct {
	Member  string `json:"member"` // ID of the voter, hexadecimal
	Name    string `json:"name"`
	Address string `json:"address"` // host and port of the voter's client URL
	Use     bool   `json:"use"`
	Why     string `json:"why,omitempty"` // why the voter should not be used, for the operator
}

// Encode returns the list as JSON.
func (l List) Encode() ([]byte, error) {
	l.Version = version
	text, err := json.Marshal(l)
	return append(text, '\n'), err
}

// Parse reads a list from untrusted bytes. A list without voters is an error: it never means that the cluster has none.
func Parse(text []byte) (List, error) {
	var l List
	if len(text) > MaxListSize {
		return l, fmt.Errorf("it has more than %d bytes", MaxListSize)
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return List{}, fmt.Errorf("it is not a list: %w", err)
	}
	switch {
	case l.Version != version:
		return List{}, fmt.Errorf("it has version %d, but this proxy reads version %d", l.Version, version)
	case len(l.Voters) == 0:
		return List{}, errors.New("it names no voter")
	case len(l.Voters) > maxVoters:
		return List{}, fmt.Errorf("it names %d voters; the maximum is %d", len(l.Voters), maxVoters)
	}
	used := false
	seen := map[string]bool{}
	for i, v := range l.Voters {
		if err := v.check(); err != nil {
			return List{}, fmt.Errorf("voter %d: %w", i+1, err)
		}
		if seen[v.Address] {
			return List{}, fmt.Errorf("it names %s twice", v.Address)
		}
		seen[v.Address], used = true, used || v.Use
	}
	if !used {
		return List{}, errors.New("it names no voter that should be used")
	}
	return l, nil
}

func (v Voter) check() error {
	for _, text := range []string{v.Member, v.Name, v.Address, v.Why} {
		if len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fmt.Errorf("a string has more than %d bytes, or contains control characters", maxText)
		}
	}
	host, port, err := net.SplitHostPort(v.Address)
	if err != nil {
		return fmt.Errorf("%q is not an address: %w", v.Address, err)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 || host == "" {
		return fmt.Errorf("%q is not an address: it needs a host and a port", v.Address)
	}
	return nil
}

// text returns the voters' names, with the reasons for not using some of them.
func (l List) text() string {
	var all []string
	for _, v := range l.Voters {
		text := v.label()
		if !v.Use {
			text += " is not used: it " + v.Why
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func (v Voter) label() string {
	if v.Name == "" {
		return v.Address
	}
	return v.Name
}

// Address returns the host and port of the first of a member's client URLs that other hosts can reach. If all are on
// the loopback interface, as in a test on one machine, it returns the first; if there is no URL, "".
func Address(clientURLs []string) string {
	var found []string
	for _, text := range clientURLs {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" {
			continue
		}
		found = append(found, net.JoinHostPort(u.Hostname(), u.Port()))
	}
	if i := slices.IndexFunc(found, func(a string) bool { return !isLoopback(a) }); i >= 0 {
		return found[i]
	}
	if len(found) > 0 {
		return found[0]
	}
	return ""
}

func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// isSelf reports whether a connection to address would reach the proxy's own listener.
func isSelf(address, listen string) bool {
	hostA, portA, _ := net.SplitHostPort(address)
	hostB, portB, _ := net.SplitHostPort(listen)
	plain := func(host string) string {
		if host == "localhost" {
			return "127.0.0.1"
		}
		return host
	}
	return portA == portB && portA != "0" && plain(hostA) == plain(hostB)
}
