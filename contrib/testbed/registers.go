// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// registerEvery is the interval at which a client accesses a register; registerTimeout is how long it waits for an
	// answer.
	registerEvery   = 50 * time.Millisecond
	registerTimeout = time.Second
	// registerLife is how long clients use a register before they move to the next. With few accesses per register, the
	// checker can try every order, including those in which accesses with an unknown outcome took effect.
	registerLife = 3 * time.Second
	// lastTimeout is how long a member may take to return the final values of all registers.
	lastTimeout     = 5 * time.Second
	registersPrefix = "registers/"
	// registersBound is how long the check may take.
	registersBound = 2 * time.Minute
)

// Access is one write or read of a register.
type Access struct {
	Client   int
	Register string
	Write    bool
	Value    string        // the value written or read; empty if the register had no value yet
	Call     time.Duration // when the request was sent; this and Return are measured from the start of the clients
	Return   time.Duration // when the answer arrived
	Unknown  bool          // the client got no answer: a write may take effect at any time, or never
}

// Registers are clients that write and read the same keys, each through a different member. All accesses are recorded,
// except reads without an answer.
type Registers struct {
	began   time.Time
	clients []*clientv3.Client
	stop    context.CancelFunc
	running sync.WaitGroup

	mu  sync.Mutex
	all []Access
}

// StartRegisters writes and reads until ctx ends, or Stop or Close is called.
func StartRegisters(ctx context.Context, endpoints []string) (*Registers, error) {
	r := &Registers{began: time.Now()}
	for _, endpoint := range endpoints {
		client, err := newClient([]string{endpoint}, nil)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.clients = append(r.clients, client)
	}
	ctx, r.stop = context.WithCancel(ctx)
	for i, client := range r.clients {
		r.running.Go(func() { r.run(ctx, i, client) })
	}
	return r, nil
}

// Stop ends all clients, reads every register once more, and returns all accesses. Without these last reads, a loss in
// a register that is no longer in use would go unnoticed.
func (r *Registers) Stop() ([]Access, error) {
	r.stop()
	r.running.Wait()
	last, err := r.last()
	r.Close()
	return append(r.all, last...), err
}

// Close ends all clients. It may be called more than once.
func (r *Registers) Close() {
	r.stop()
	r.running.Wait()
	_ = r.close() // an error does not matter, because the clients are not used again
}

// last reads all registers through the first client that gets an answer.
func (r *Registers) last() (all []Access, err error) {
	for _, client := range r.clients {
		call := time.Since(r.began)
		ctx, cancel := context.WithTimeout(context.Background(), lastTimeout)
		answer, failed := client.Get(ctx, registersPrefix, clientv3.WithPrefix())
		cancel()
		if failed != nil {
			err = fmt.Errorf("cannot read the final values of the registers: %w", failed)
			continue
		}
		holds := map[string]string{}
		for _, a := range r.all {
			holds[a.Register] = "" // a register has no key in etcd if no write took effect
		}
		for _, kv := range answer.Kvs {
			holds[string(kv.Key)] = string(kv.Value)
		}
		for name, value := range holds {
			all = append(all, Access{
				Client: len(r.clients), Register: name, Value: value, Call: call, Return: time.Since(r.began),
			})
		}
		return all, nil
	}
	return nil, err
}

func (r *Registers) close() error {
	var errs []error
	for _, c := range r.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// run alternately writes and reads the current register.
func (r *Registers) run(ctx context.Context, name int, client *clientv3.Client) {
	tick := time.NewTicker(registerEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Since(r.began)
		a := Access{Client: name, Register: fmt.Sprint(registersPrefix, int(now/registerLife)), Call: now}
		a.Write = (n+name)%2 == 0 // neighboring clients alternate: while one writes, the next one reads
		if a.Write {
			a.Value = fmt.Sprintf("%d/%d", name, n)
		}
		if a = r.access(client, a); a.Write || !a.Unknown {
			r.mu.Lock()
			r.all = append(r.all, a)
			r.mu.Unlock()
		}
		if a.Unknown { // pause, because the check has to try every position of an access with an unknown outcome
			pause(ctx, registerTimeout)
		}
	}
}

// access does not use the context of the clients, so that a request in flight can complete when they end.
func (r *Registers) access(client *clientv3.Client, a Access) Access {
	ctx, cancel := context.WithTimeout(context.Background(), registerTimeout)
	defer cancel()
	var err error
	if a.Write {
		_, err = client.Put(ctx, a.Register, a.Value)
	} else {
		var answer *clientv3.GetResponse
		if answer, err = client.Get(ctx, a.Register); err == nil && len(answer.Kvs) > 0 {
			a.Value = string(answer.Kvs[0].Value)
		}
	}
	a.Return, a.Unknown = time.Since(r.began), err != nil
	return a
}

// Linearizable returns an error unless an order of all accesses exists in which each takes effect between its call and
// its return, and each read returns the last written value. The error names the register. A check that takes too long
// is an error, too.
func Linearizable(all []Access) error {
	byRegister := map[string][]porcupine.Operation{}
	for _, a := range all {
		end := int64(a.Return)
		if a.Unknown {
			end = math.MaxInt64
		}
		byRegister[a.Register] = append(byRegister[a.Register], porcupine.Operation{
			ClientId: a.Client, Input: a.Write, Output: a.Value, Call: int64(a.Call), Return: end,
		})
	}
	until := time.Now().Add(registersBound)
	var wrong []error
	for name, operations := range byRegister {
		switch porcupine.CheckOperationsTimeout(register(), operations, max(time.Until(until), time.Millisecond)) {
		case porcupine.Illegal:
			wrong = append(wrong, fmt.Errorf("no order of the %d accesses to %s explains what was read",
				len(operations), name))
		case porcupine.Unknown:
			wrong = append(wrong, fmt.Errorf("the check of %d accesses to %s has not finished within %v",
				len(operations), name, registersBound))
		case porcupine.Ok:
		}
	}
	return errors.Join(wrong...)
}

// register is the model of a key in etcd: the input is whether the access is a write, and the output is the value
// written or read.
func register() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, write, value any) (bool, any) {
			if write.(bool) {
				return true, value
			}
			return state == value, state
		},
	}
}
