// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long && s3

package e2e

import (
	"fmt"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// s3Store runs an S3 server and gives what a configuration says of it.
func s3Store(t *testing.T) string {
	t.Helper()
	address, _ := testbed.StartS3(t)
	return fmt.Sprintf("{s3: {endpoint: %q, bucket: %s, region: us-east-1, credentialsFile: %s}}", "http://"+address,
		testbed.S3Bucket, testbed.S3Credentials(t, testbed.S3SecretKey))
}

func TestAClusterOfWhichEveryDiskIsLostIsBroughtBackFromS3(t *testing.T) {
	t.Parallel()
	w, saved, before := savedAndLost(t, s3Store(t), false)
	w.backFromSnapshot(saved, before)
}
