// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// recording contains what the terminal showed during a run.
type recording struct {
	frames []shot
}

// shot is the content of the terminal from one moment until the next shot.
type shot struct {
	at    time.Duration
	lines []string
}

const (
	// playedFaster is the playback speed relative to the run; finalShot is how long the last shot is shown.
	playedFaster = 4
	finalShot    = 8 * time.Second
	// The size of the recorded terminal, and of a character in pixels.
	svgColumns = 100
	charWidth  = 7.83
	lineHeight = 18
	svgMargin  = 14
)

// add appends a shot, unless it differs from the last one only in figures such as the age of the run.
func (r *recording) add(at time.Duration, lines []string) {
	if n := len(r.frames); n > 0 && slices.EqualFunc(r.frames[n-1].lines, lines, func(a, b string) bool {
		return withoutNumbers(a) == withoutNumbers(b)
	}) {
		return
	}
	r.frames = append(r.frames, shot{at, lines})
}

// writeRecording adds the result and the output of quorumctl status to the recording, and writes the file.
func (d *demo) writeRecording(ctx context.Context, tape *recording, reached string) error {
	status := exec.CommandContext(ctx, filepath.Join(filepath.Dir(d.quorumd), "quorumctl"), "status")
	status.Env = append(os.Environ(), "QUORUMCTL_SOCKET="+d.hosts[0].Options.Socket(), "NO_COLOR=1")
	out, err := status.Output()
	if err != nil {
		return fmt.Errorf("cannot record quorumctl status: %w", err)
	}
	last := tape.frames[len(tape.frames)-1]
	lines := append(slices.Clone(last.lines), "", reached, "", "$ quorumctl status")
	lines = append(lines, strings.Split(strings.TrimRight(string(out), "\n"), "\n")...)
	tape.frames = append(tape.frames, shot{last.at + time.Second, lines})
	return os.WriteFile(d.svg, []byte(tape.svg()), 0o644)
}

const svgStyle = `
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328;white-space:pre}
.shot{visibility:hidden}.last{visibility:visible}
.back{fill:#f6f8fa;stroke:#d1d9e0}.dim{fill:#59636e}.ok{fill:#1a7f37}.code{fill:#0969da}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.back{fill:#0d1117;stroke:#3d444d}.dim{fill:#9198a1}
.ok{fill:#3fb950}.code{fill:#58a6ff}}
@media(prefers-reduced-motion:reduce){.shot{animation:none!important}}
`

// svg returns the recording as an animated image. A viewer without animation sees the last shot.
func (r *recording) svg() string {
	began := r.frames[0].at
	moment := func(i int) time.Duration { return (r.frames[i].at - began) / playedFaster }
	last := len(r.frames) - 1
	total := moment(last) + finalShot
	rows := 0
	for _, s := range r.frames {
		rows = max(rows, len(s.lines))
	}
	width, height := int(svgColumns*charWidth)+2*svgMargin, (rows+1)*lineHeight+2*svgMargin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+
		"\n<title>Four hosts form a cluster of three voters and a standby</title>\n<style>%s", width, height, width,
		height, svgStyle)
	for i := range r.frames {
		fmt.Fprintf(&b, "@keyframes k%d{0%%{visibility:hidden}", i)
		if i > 0 {
			fmt.Fprintf(&b, "%s{visibility:hidden}", percent(moment(i), total))
		}
		fmt.Fprintf(&b, "%s{visibility:visible}", percent(moment(i), total))
		if i < last {
			fmt.Fprintf(&b, "%s{visibility:hidden}100%%{visibility:hidden}", percent(moment(i+1), total))
		}
		fmt.Fprintf(&b, "}#s%d{animation:k%d %.1fs step-end infinite}\n", i, i, total.Seconds())
	}
	fmt.Fprintf(&b, "</style>\n<rect class=\"back\" x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n",
		width-1, height-1)
	for i, s := range r.frames {
		class := "shot"
		if i == last {
			class = "shot last"
		}
		fmt.Fprintf(&b, "<g id=\"s%d\" class=\"%s\">\n", i, class)
		for n, line := range s.lines {
			if line != "" {
				fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", svgMargin, svgMargin+(n+1)*lineHeight,
					colored(cut(line, svgColumns)))
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func percent(part, of time.Duration) string {
	return fmt.Sprintf("%.2f%%", 100*float64(part)/float64(of))
}

var codeWord = regexp.MustCompile(`\b(?:OK|[A-Z][A-Z_]{3,})\b`)

// colored returns a line as the content of an SVG element, with its codes colored.
func colored(line string) string {
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(line)
	if strings.HasPrefix(line, "quorumd demo") || strings.HasPrefix(line, "HOST ") {
		return `<tspan class="dim">` + escaped + "</tspan>"
	}
	return codeWord.ReplaceAllStringFunc(escaped, func(word string) string {
		class := "code"
		if word == "OK" {
			class = "ok"
		}
		return `<tspan class="` + class + `">` + word + "</tspan>"
	})
}
