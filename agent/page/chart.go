// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

// chart plots the probe's measurements by the minute: time on the x axis, latency on a logarithmic y axis from lowest
// to highest. A minute without a measurement is a gap.
type chart struct {
	Width, Height int
	Step          int // width of a minute on the x axis
	Grid          []gridLine
	Limit         float64  // y coordinate of the limit; 0 if there is none
	Max, Median   []string // SVG points, one polyline per period without a gap
	Hung          []int    // x coordinate of each minute in which a write hung for a second or longer
	From          string   // how long ago the first minute was
	Text          string   // describes the chart for screen readers
	LimitText     string   // empty when there is no limit
}

// gridLine is a grid line at a round latency, such as 1 ms.
type gridLine struct {
	At    float64 // y coordinate
	Share float64 // At in percent of the chart's height, for the label, which does not scale with the chart
	Label string
}

const (
	chartHeight = 120
	minuteWidth = 6
	lowest      = 0.0001 // seconds
	highest     = 10.0
)

// chartOf returns the chart of these measurements, or nil if there are none, or if the clock was set so far between two
// of them that they do not fit into FsyncMinutes.
func chartOf(minutes []control.FsyncMinute, limit float64) *chart {
	if len(minutes) == 0 {
		return nil
	}
	first, last := minutes[0].Start, minutes[len(minutes)-1].Start
	n := int(last.Sub(first)/time.Minute) + 1
	if n < 1 || n > control.FsyncMinutes {
		return nil
	}
	c := &chart{
		Width: n * minuteWidth, Height: chartHeight, Step: minuteWidth,
		From: display.Span(time.Duration(n) * time.Minute),
		Text: "Slowest write of each minute (upper line) and median (lower line)",
	}
	for _, at := range []float64{0.001, 0.01, 0.1, 1} {
		y := height(at)
		c.Grid = append(c.Grid, gridLine{y, y / chartHeight * 100, display.Latency(at)})
	}
	if limit > 0 {
		c.Limit = height(limit)
		c.LimitText = display.Latency(limit)
		c.Text += "; dashed: limit of p99, " + c.LimitText
	}
	var maxima, medians []string
	before := -1
	end := func() {
		if len(maxima) > 0 {
			c.Max, c.Median = append(c.Max, strings.Join(maxima, " ")), append(c.Median, strings.Join(medians, " "))
		}
		maxima, medians = nil, nil
	}
	for _, m := range minutes {
		at := int(m.Start.Sub(first) / time.Minute)
		if at != before+1 {
			end()
		}
		before = at
		if m.HungSeconds >= 1 {
			c.Hung = append(c.Hung, at*minuteWidth)
		}
		if m.Count == 0 {
			end()
			continue
		}
		for _, x := range []int{at * minuteWidth, (at + 1) * minuteWidth} {
			maxima = append(maxima, fmt.Sprintf("%d,%.1f", x, height(m.MaxSeconds)))
			medians = append(medians, fmt.Sprintf("%d,%.1f", x, height(m.MedianSeconds)))
		}
	}
	end()
	return c
}

// height returns the y coordinate of a latency: its distance from the top of the chart.
func height(seconds float64) float64 {
	share := math.Log(max(seconds, lowest)/lowest) / math.Log(highest/lowest)
	return math.Round((1-min(share, 1))*chartHeight*10) / 10
}
