// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import "path/filepath"

// learnersName is the file in the state directory with the permanent learners. A host record in etcd expires when its
// agent cannot reach the cluster, for example while the link to a distant site is down. The learner there must not be
// removed for that reason.
const learnersName = "learners.json"

// NoteLearners records the permanent learners: for each member ID the maximum number of learners that its etcd process
// allows, or -1 if that is unknown. The map must not be changed afterwards.
func (f *State) NoteLearners(of map[uint64]int) error {
	defer f.writes()()
	file := make(map[ID]int, len(of))
	for member, limit := range of {
		file[ID(member)] = limit
	}
	if err := writeJSON(f.disk, filepath.Join(f.state, learnersName), file, true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.learners = of
	return nil
}

// openLearners reads the file learnersName. If that fails, no learner counts as permanent until its host publishes its
// record.
func (f *State) openLearners() {
	var file map[ID]int
	if _, err := readJSON(f.disk, filepath.Join(f.state, learnersName), &file); err != nil {
		return
	}
	f.learners = make(map[uint64]int, len(file))
	for member, limit := range file {
		f.learners[uint64(member)] = limit
	}
}
