// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Notes are what is to be written beside the step: what this host's disk is to say from now on, which is done beside
// the loop, since the disk may hang, and the queue in etcd.
type Notes struct {
	Hold    Hold
	Request RequestNote
	Removal RemovalNote
	Self    SelfNote
	Queue   QueueNote
	Backup  BackupNote
}

// Hold says whether etcd's unit is to be kept from starting by itself. At a boot it would start before there is
// anybody to ask: on a host that holds no member of the cluster it would make one of its own, or come back as a member
// that was removed.
type Hold uint8

// What becomes of the start guard. The zero value leaves it as it is.
const (
	HoldAsIs Hold = iota // it cannot be told now
	HoldBack             // it lies there, and the unit does not start
	HoldNot              // it does not
)

// WantHold tells whether etcd may start by itself. It holds back only a unit that does not run, on the word of the
// cluster in this very round; or on a host that has no data and never knew a cluster, which may reboot before there is
// one. It lets go only where the data of a listed member lie: until a join has started etcd, which lets go as well,
// the unit's environment is not that of the join.
func WantHold(v View) Hold {
	joining := v.cannotRead(RecordOp) || v.Op != nil && v.Op.Host == v.Self.ID
	down := v.Unit.State == UnitInactive || v.Unit.State == UnitFailed
	bare := v.Data.State == DataEmpty && v.Cluster.ExpectedID == 0
	_, listed := v.member()
	switch {
	case v.Recovery != nil: // its steps do it
		return HoldAsIs
	case v.Asked != nil && v.Asked.Stopped: // by what was asked
		return HoldAsIs
	case v.Self.Mode != Manage || v.foreign() || v.Data.State == DataUnknown:
		return HoldAsIs
	case v.Cluster.Reachable && !v.Cluster.Fresh: // what was carried over is not the cluster's word of now
		return HoldAsIs
	case v.Cluster.Reachable && v.Data.State == DataMember && v.listed(v.Data.MemberID),
		v.Bootstrap.Requested && bare && !v.Cluster.Reachable:
		return HoldNot
	case v.Cluster.Reachable && listed:
		return HoldAsIs
	case down && !joining && !v.Bootstrap.Requested && (v.Cluster.Reachable || bare):
		return HoldBack
	}
	return HoldAsIs
}
