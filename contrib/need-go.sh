#!/bin/sh
# need-go.sh GO: prints in one sentence what is wrong with that Go, and nothing if it can build quorumd.
cd "$(dirname "$0")/.." || exit 1
need=$(sed -n 's/^go //p' go.mod)
command -v "$1" >/dev/null 2>&1 || { echo "need Go ≥ $need, found none as $1: https://go.dev/dl"; exit; }
# Go 1.21 or newer downloads the version in go.mod by itself, if it may.
found=$("$1" version 2>/dev/null | sed -n 's/^go version .*go\([0-9][0-9.]*\).*/\1/p')
[ -n "$found" ] || found=$(GOTOOLCHAIN=local "$1" version 2>/dev/null | sed -n 's/^go version .*go\([0-9][0-9.]*\).*/\1/p')
[ "$(printf '%s\n' "$need" "$found" | sort -V | head -n 1)" = "$need" ] || echo "need Go ≥ $need, found ${found:-none that tells its version}: https://go.dev/dl"
