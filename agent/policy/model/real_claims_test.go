// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build realetcd

package model

// claims are the model's statements about etcd, each as a function of a world without agents.
type claims struct {
	refuses func(w *world, o operation) answer    // the answer to a membership change
	may     func(w *world, o operation) answerSet // those that it may give instead of accepting
	quorum  func(w *world) bool                   // whether etcd answers at all
	serves  func(w *world, i int) bool            // whether a voter serves linearizable reads, and a learner follows
	looks   func(w *world, i int) bool            // whether a member looks live
	up      func(w *world, i int, how uint8) host // the outcome for an etcd that starts or was removed
	old     func(w *world, i int) bool            // whether a joining etcd may receive an outdated list: how is 1
	lost    bool                                  // whether a change that only a leader knew of may be lost with it
}

// ofTheModel returns the claims that are explored.
func ofTheModel() claims {
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
		may: func(w *world, o operation) answerSet {
			return w.mayRefuse([...]uint8{
				addLearner, promote, removeLearner, addLearner, promote,
				removeLearner,
			}[o.kind], int(o.host))
		},
		quorum: (*world).quorum,
		serves: (*world).serves,
		looks:  (*world).answers,
		up: func(w *world, i int, how uint8) host {
			after := *w
			after.unitChanges(i, how)
			return after.hosts[i]
		},
		old: (*world).asksOldList, lost: true,
	}
}

// texts returns the texts of etcd's answers, in all its versions.
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
