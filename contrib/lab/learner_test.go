//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
)

// TestAPermanentLearnerJoinsOnceEveryRunningEtcdAllowsASecondLearner makes the spare join as a permanent learner, next
// to the standby. Every agent must read the limit with which its host's etcd was started.
func TestAPermanentLearnerJoinsOnceEveryRunningEtcdAllowsASecondLearner(t *testing.T) {
	f := formedFleetRunning(t)
	f.waitHealthy()
	learner := f.role(policy.RoleSpare)[0]
	settings := map[*lab.Host]lab.Settings{}
	for _, h := range f.Hosts {
		settings[h] = h.Settings()
		settings[h]["etcd"]["environment"] = map[string]string{"ETCD_MAX_LEARNERS": "2"}
	}
	settings[learner]["host"]["role"] = "learner"
	f.reconfigure(settings)
	f.eventually("the running etcds allow one learner only", func() bool {
		return f.hasReason(learner, string(policy.LearnerLimit))
	})
	t.Log(f.shell(learner, "quorumctl explain"))
	load := f.retryingWrites()
	var members []string
	for _, m := range f.mustMembers() {
		members = append(members, m.Name)
	}
	f.readdress("a second learner", len(members), members...)
	f.within(2*bound, "the permanent learner has joined", func() bool {
		return f.is(learner, policy.RoleLearner) && f.has(3, 2) && f.isIdle()
	})
	f.checkWritten(load.Stop)
	t.Log(f.shell(learner, "quorumctl status"))
	f.verify(3, 2)
}
