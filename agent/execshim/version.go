// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package execshim

import "regexp"

// EtcdVersion parses the output of etcd --version, and returns a version such as "3.6.16"; "" if it is not etcd's
// output.
func EtcdVersion(answer []byte) string {
	match := regexp.MustCompile(`(?m)^etcd Version: (\S+)\s*$`).FindSubmatch(answer)
	if match == nil {
		return ""
	}
	return string(match[1])
}
