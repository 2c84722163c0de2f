#!/bin/sh
# Copyright The quorumd Authors
# SPDX-License-Identifier: Apache-2.0
#
# check.sh GOVULNCHECK MODULE...: checks whether the code that these modules call has known vulnerabilities. It fails on
# findings and on its own errors. If the database is unreachable it does not fail, but prints a warning and also writes
# it to the file in VULNCHECK_SKIPPED, if set.
set -eu
tool=$1
shift
skipped=
for module in "$@"; do
	status=0
	said=$("$tool" ${VULNDB:+-db "$VULNDB"} -C "$module" ./... 2>&1) || status=$?
	case $status in
	0) echo "vulncheck: $module: no known vulnerability is called" ;;
	3)
		echo "$said"
		echo "vulncheck: $module calls code with known vulnerabilities → update the modules named above" >&2
		exit 1
		;;
	*)
		case $said in
		*"fetching vulnerabilities"* | *"dial tcp"* | *"no such host"*)
			skipped="$skipped $module"
			echo "$said" | tail -3 >&2
			;;
		*)
			echo "$said" >&2
			echo "vulncheck: govulncheck failed on $module with exit code $status" >&2
			exit 1
			;;
		esac
		;;
	esac
done
[ -n "$skipped" ] || exit 0
cat >&2 <<END
******************************************************************************************
*** NOT CHECKED for known vulnerabilities:$skipped
*** The vulnerability database (${VULNDB:-https://vuln.go.dev}) is unreachable.
*** Run "make vulncheck" on a machine that reaches it, or set a mirror: make vulncheck VULNDB=URL
******************************************************************************************
END
[ -z "${VULNCHECK_SKIPPED:-}" ] || echo "not checked for known vulnerabilities:$skipped" >"$VULNCHECK_SKIPPED"
