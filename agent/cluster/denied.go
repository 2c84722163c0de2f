// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import "fmt"

// DeniedText returns a message with etcd's refusal, the user, and the commands that grant the permissions. A role is
// enough for keys below quorumd's own prefix. Adding, promoting and removing members and transferring leadership
// require etcd's role root.
func DeniedText(err error, who, prefix string) string {
	if who == "" {
		return fmt.Sprintf("etcd requires authentication (%s): set etcd.user and etcd.passwordFile, or "+
			"configure a client certificate with a common name", err)
	}
	return fmt.Sprintf("etcd refuses user %[1]s (%[2]s); to allow it: etcdctl role add quorumd; etcdctl role "+
		"grant-permission quorumd readwrite --prefix=true %[3]s; etcdctl user grant-role %[1]s quorumd; and, because "+
		"only the root role may change members and transfer leadership: etcdctl user grant-role %[1]s root",
		who, err, prefix)
}
