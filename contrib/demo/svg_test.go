// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestARecordingIsAnAnimatedImage(t *testing.T) {
	t.Parallel()
	var r recording
	r.add(0, []string{"HOST", "n1 spare 1.5 ms"})
	r.add(time.Second, []string{"HOST", "n1 spare 2.5 ms"}) // only a figure changed
	r.add(2*time.Second, []string{"HOST", "n1 voter", "IDLE: <&> " + strings.Repeat("x", 200)})
	if len(r.frames) != 2 {
		t.Fatalf("%d shots, want 2", len(r.frames))
	}
	image := r.svg()
	for in := xml.NewDecoder(strings.NewReader(image)); ; {
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"@keyframes k1{", `<tspan class="code">IDLE</tspan>: &lt;&amp;&gt; x`, "x…</text>",
		"prefers-color-scheme:dark",
		"prefers-reduced-motion",
	} {
		if !strings.Contains(image, want) {
			t.Errorf("the image has no %s:\n%s", want, image)
		}
	}
}
