#!/bin/sh
# The executable of berth under the name of its package, which uvx and pipx run by default.
self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in
    /*) self=$target ;;
    *) self=$(dirname "$self")/$target ;;
  esac
done
exec "$(dirname "$self")/berth" "$@"
