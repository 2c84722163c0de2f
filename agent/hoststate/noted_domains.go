// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import "path/filepath"

// domainsName is the file in the state directory with the failure domain that each member's host has published. A host
// record in etcd expires when its agent dies, which is when the other hosts need the domain.
const domainsName = "domains.json"

// NoteDomains records the failure domain of each member's host. The domain of a member without an entry is unknown. The
// map must not be changed afterwards. If the write fails, the new domains take no effect, so no member is removed
// because of them.
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

// openDomains reads the file domainsName. If that fails, no domain is known until the hosts publish theirs again.
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
