#!/bin/sh
# What is tested: publishes a directory on a server of its own, and prints the URL.
set -eu

create() { berth servers create --task preview --json; }

# A backend that fails for a moment gets a second chance.
created=$(create || create)
server=$(echo "$created" | sed 's/.*"id":"\([^"]*\)".*/\1/')
deployed=$(berth deploy "$1" --server "$server" --json)
echo "$deployed" | sed 's/.*"url":"\([^"]*\)".*/\1/'
