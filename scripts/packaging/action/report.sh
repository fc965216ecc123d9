#!/bin/sh
# Copies the log of the instance that setup-berth has started, and ends it. Keys are in neither the log nor the report.
set -eu

data=$RUNNER_TEMP/berth
[ -d "$data" ] || exit 0
mkdir -p "$RUNNER_TEMP/berth-logs"
berth logs --data "$data" >"$RUNNER_TEMP/berth-logs/requests.txt" || true
[ ! -f "$data/berth.log" ] || cp "$data/berth.log" "$RUNNER_TEMP/berth-logs/"
berth stop --data "$data"
