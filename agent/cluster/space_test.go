// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestOnlyTheAlarmAboutSpaceIsDisarmed(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 1, quick())
	client, ctx := c.Client(t), within(t)
	for _, alarm := range []pb.AlarmType{pb.AlarmType_NOSPACE, pb.AlarmType_CORRUPT} {
		_, err := pb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx, &pb.AlarmRequest{
			Action: pb.AlarmRequest_ACTIVATE, Alarm: alarm, MemberID: 7,
		})
		must(t, err)
	}
	must(t, connect(t, c.Endpoints()...).DisarmNoSpace(ctx))
	left, err := client.AlarmList(ctx)
	must(t, err)
	if len(left.Alarms) != 1 || left.Alarms[0].Alarm != pb.AlarmType_CORRUPT {
		t.Errorf("the alarms left are %v", left.Alarms)
	}
}

func TestACompactionThatWasMadeAlreadySucceeds(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 1, quick())
	ctx, own := within(t), connect(t, c.Endpoints()...)
	var last int64
	for range 3 {
		answer, err := c.Client(t).Put(ctx, "key", "value")
		must(t, err)
		last = answer.Header.Revision
	}
	for range 2 {
		must(t, own.Compact(ctx, last))
	}
	if _, err := c.Client(t).Get(ctx, "key", clientv3.WithRev(last-1)); err == nil {
		t.Error("the history before the revision is still there")
	}
	if err := own.Compact(ctx, last+100); err == nil {
		t.Error("a revision of the future is compacted")
	}
}

func TestADefragmentationOfADeadMemberFailsWithItsTime(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 1, quick())
	own := connect(t, c.Endpoints()...)
	must(t, own.Defragment(within(t), c.Endpoints()[0]))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := own.Defragment(ctx, noListener(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a member that does not answer: %v", err)
	}
}
