// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

// claims are the model's claims about etcd, each as a function of a world without agents.
type claims struct {
	// refuses returns the answer to a membership change. mayRefuse returns the errors that etcd may return although it
	// could accept the change.
	refuses   func(w *world, o operation) answer
	mayRefuse func(w *world, o operation) answerSet
	quorum    func(w *world) bool
	// serves reports whether a voter serves linearizable reads, or a learner applies writes.
	serves func(w *world, i int) bool
	// looksLive reports whether a member's status looks live.
	looksLive func(w *world, i int) bool
	// afterStart returns the state after an etcd has started or detected that it was removed.
	afterStart func(w *world, i int, how uint8) host
	// mayGetOldList reports whether a joining etcd may receive an outdated list, which is outcome 1.
	mayGetOldList  func(w *world, i int) bool
	lostWithLeader bool // a change that only the leader has logged may be lost with it
}

// modelClaims returns the claims of the model.
func modelClaims() claims {
	return claims{
		refuses: func(w *world, o operation) answer {
			i := int(o.host)
			switch o.kind {
			case opAdd, opLateAdd:
				return w.refusesAdd(i, o.kind == opLateAdd)
			case opPromote, opLatePromote:
				return w.refusesPromote(i)
			default:
				return w.refusesRemove(i, o.kind == opLateRemove)
			}
		},
		mayRefuse: func(w *world, o operation) answerSet {
			return w.mayRefuse([...]uint8{
				addLearner, promote, removeLearner, addLearner, promote,
				removeLearner,
			}[o.kind], int(o.host))
		},
		quorum:    (*world).quorum,
		serves:    (*world).serves,
		looksLive: (*world).answers,
		afterStart: func(w *world, i int, how uint8) host {
			after := *w
			after.unitChanges(i, how)
			return after.hosts[i]
		},
		mayGetOldList: (*world).asksOldList, lostWithLeader: true,
	}
}

// texts returns the texts of an answer in all versions of etcd.
func (a answer) texts() []string {
	return [answers][]string{
		accepted:         {"accepted"},
		unhealthyCluster: {"etcdserver: unhealthy cluster"},
		urlExists:        {"etcdserver: Peer URLs already exists", "etcdserver: member ID already exist"},
		tooManyLearners:  {"etcdserver: too many learner members in cluster"},
		notInSync:        {"etcdserver: can only promote a learner member which is in sync with leader"},
		notLearner:       {"etcdserver: can only promote a learner member"},
		notFound:         {"etcdserver: member not found"},
		notEnough:        {"etcdserver: re-configuration failed due to not enough started members"},
	}[a]
}

func (s answerSet) texts() (list []string) {
	for a := range answers {
		if s.has(a) {
			list = append(list, a.texts()[0])
		}
	}
	return list
}

func (s answerSet) has(a answer) bool { return s&(1<<a) != 0 }
