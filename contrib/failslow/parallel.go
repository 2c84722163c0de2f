// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"runtime"
	"sync"
	"time"
)

// playAll runs every scenario with every seed. The outcomes are in the order of the scenarios and seeds, regardless of
// the number of CPUs.
func playAll(list []scenario, first, seeds int, healthyFor time.Duration, lives *pasts) ([]outcome, error) {
	outcomes, failures := make([]outcome, len(list)*seeds), make([]error, len(list)*seeds)
	due := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range due {
				outcomes[i], failures[i] = play(&list[i/seeds], first+i%seeds, healthyFor, lives)
			}
		})
	}
	for i := range outcomes {
		due <- i
	}
	close(due)
	workers.Wait()
	return outcomes, errors.Join(failures...)
}
