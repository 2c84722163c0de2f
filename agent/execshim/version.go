// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package execshim

import "regexp"

// EtcdVersion returns the version in the output of etcd --version, such as "3.6.16"; "" if the output is not etcd's.
func EtcdVersion(answer []byte) string {
	match := regexp.MustCompile(`(?m)^etcd Version: (\S+)\s*$`).FindSubmatch(answer)
	if match == nil {
		return ""
	}
	return string(match[1])
}
