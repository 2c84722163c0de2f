// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import "github.com/prometheus/client_golang/prometheus"

// Metrics returns a collector of the proxy's metrics.
func (f *Proxy) Metrics() prometheus.Collector {
	of := []string{"voter", "address"}
	name := func(name, help string, labels []string) *prometheus.Desc {
		return prometheus.NewDesc("quorumd_proxy_"+name, help, labels, nil)
	}
	return &collector{
		f:      f,
		open:   name("connections", "Open connections to a voter.", of),
		used:   name("voter_used", "1 if new connections go to a voter, else 0.", of),
		taken:  name("taken_total", "Connections that a voter accepted.", of),
		failed: name("failed_total", "Connections that a voter did not accept.", of),
		moved:  name("moved_total", "Connections closed because their voter was excluded.", of),
		ended: name("refused_total", "Client connections reset, by reason: limit (too many connections) or "+
			"unserved (no voter accepted the connection).", []string{"reason"}),
		age: name("list_age_seconds", "Time since the agent last wrote the list of voters.", nil),
	}
}

type collector struct {
	f                                            *Proxy
	open, used, taken, failed, moved, ended, age *prometheus.Desc
}

func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.open, c.used, c.taken, c.failed, c.moved, c.ended, c.age} {
		to <- d
	}
}

func (c *collector) Collect(to chan<- prometheus.Metric) {
	t := c.f.table
	t.mu.Lock()
	defer t.mu.Unlock()
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	for _, p := range t.upstreams {
		send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64) {
			to <- prometheus.MustNewConstMetric(d, kind, value, p.name, p.address)
		}
		used := 0.0
		if p.use {
			used = 1
		}
		send(c.open, gauge, float64(len(p.links)))
		send(c.used, gauge, used)
		send(c.taken, counter, float64(p.accepted))
		send(c.failed, counter, float64(p.failures))
		send(c.moved, counter, float64(p.moved))
	}
	to <- prometheus.MustNewConstMetric(c.ended, counter, float64(t.refused), "limit")
	to <- prometheus.MustNewConstMetric(c.ended, counter, float64(t.reset), "unserved")
	to <- prometheus.MustNewConstMetric(c.age, gauge, c.f.list.age().Seconds())
}
