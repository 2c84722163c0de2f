#!/bin/sh
# need-go.sh GO: prints why this Go cannot build quorumd, or nothing if it can.
cd "$(dirname "$0")/.." || exit 1
need=$(sed -n 's/^go //p' go.mod)
command -v "$1" >/dev/null 2>&1 || { echo "need Go ≥ $need, found no $1: https://go.dev/dl"; exit; }
# Go 1.21 and newer download the version in go.mod, unless GOTOOLCHAIN forbids it.
found=$("$1" version 2>/dev/null | sed -n 's/^go version .*go\([0-9][0-9.]*\).*/\1/p')
[ -n "$found" ] || found=$(GOTOOLCHAIN=local "$1" version 2>/dev/null | sed -n 's/^go version .*go\([0-9][0-9.]*\).*/\1/p')
[ "$(printf '%s\n' "$need" "$found" | sort -V | head -n 1)" = "$need" ] || echo "need Go ≥ $need, found ${found:-a Go whose version cannot be determined}: https://go.dev/dl"
