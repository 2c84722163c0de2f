// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import "path/filepath"

// domainsName is the file in the state directory that tells in which failure domains the members' hosts are, as they
// have said themselves: what a host says in etcd goes with its agent, and is asked for when that is dead.
const domainsName = "domains.json"

// NoteDomains notes in which failure domain the host of each member is; one that is not named is in none that is known.
// The map is not to be changed after. What cannot be written is not gone by either: then nobody is removed.
func (f *State) NoteDomains(of map[uint64]string) error {
	defer f.writes()()
	file := make(map[ID]string, len(of))
	for member, domain := range of {
		file[ID(member)] = domain
	}
	if err := writeJSON(f.disk, filepath.Join(f.state, domainsName), file, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.domains = of
	return nil
}

// openDomains reads it. What cannot be read tells of nobody where it is, until the hosts say so anew.
func (f *State) openDomains() {
	var file map[ID]string
	if _, err := readJSON(f.disk, filepath.Join(f.state, domainsName), &file); err != nil {
		return
	}
	f.domains = make(map[uint64]string, len(file))
	for member, domain := range file {
		f.domains[uint64(member)] = domain
	}
}
