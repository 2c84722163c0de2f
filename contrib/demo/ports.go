// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// portsAreFree returns an error if a port of the hosts is in use; the error names the process that uses it. To check a
// port, portsAreFree listens on it for a moment.
func (d *demo) portsAreFree() error {
	var taken []string
	for _, h := range d.hosts {
		addresses := []string{h.Options.Metrics}
		for _, text := range []string{h.Options.ClientURL, h.Options.PeerURL} {
			u, err := url.Parse(text)
			if err != nil {
				return err
			}
			addresses = append(addresses, u.Host)
		}
		for _, address := range addresses {
			listener, err := net.Listen("tcp", address)
			switch {
			case errors.Is(err, syscall.EADDRINUSE):
				taken = append(taken, address+listenerOf(address))
			case err != nil:
				return fmt.Errorf("cannot start: %w", err)
			default:
				if err := listener.Close(); err != nil {
					return err
				}
			}
		}
	}
	if len(taken) == 0 {
		return nil
	}
	return fmt.Errorf("cannot start: %s is already in use; stop that program first",
		strings.Join(taken, ", "))
}

// listenerOf describes the process that listens on an address, in parentheses. It returns "" if it finds no such
// socket, or cannot read the name of the process.
func listenerOf(address string) string {
	inode := listeningInode(address)
	if inode == "" {
		return ""
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, link := range links {
		// a different socket, a process of another user, or one that has ended
		if to, err := os.Readlink(link); err != nil || to != "socket:["+inode+"]" {
			continue
		}
		pid := strings.Split(link, "/")[2]
		name, err := os.ReadFile(filepath.Join("/proc", pid, "comm"))
		if err != nil {
			return ""
		}
		return fmt.Sprintf(" (%s, process %s)", strings.TrimSpace(string(name)), pid)
	}
	return " (a process of another user)"
}

// listeningInode returns the inode of the socket that listens on an IPv4 address, or on that port of all addresses; ""
// if there is none.
func listeningInode(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return ""
	}
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	four := at.Addr().As4()
	slices.Reverse(four[:]) // /proc/net/tcp shows the address in the machine's byte order, here little-endian
	port := fmt.Sprintf(":%04X", at.Port())
	own, all := strings.ToUpper(hex.EncodeToString(four[:]))+port, "00000000"+port
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > 9 && fields[3] == "0A" && (fields[1] == own || fields[1] == all) {
			return fields[9]
		}
	}
	return ""
}
