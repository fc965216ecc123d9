#!/bin/sh
# Becomes the executable of berth that npm has installed for this system, in a package of its own. Signals, streams and the
# exit code are then those of the executable, and who kills this process kills it.
set -u

self=$0
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in
    /*) self=$target ;;
    *) self=$(dirname "$self")/$target ;;
  esac
done
package=$(cd "$(dirname "$self")/.." && pwd -P)

case $(uname -s) in
  Linux) system=linux ;;
  Darwin) system=darwin ;;
  *) system=$(uname -s) ;;
esac
case $(uname -m) in
  x86_64 | amd64) processor=x64 loader=x86-64.so.2 ;;
  aarch64 | arm64) processor=arm64 loader=aarch64.so.1 ;;
  *) processor=$(uname -m) loader=none ;;
esac
libc=
if [ "$system" = linux ] && [ ! -e "/lib/ld-linux-$loader" ] && [ ! -e "/lib64/ld-linux-$loader" ]; then
  for file in /lib/ld-musl-*.so.1; do [ -e "$file" ] && libc=-musl; done
fi
name=berth-$system-$processor$libc

# Beside this package, or inside it where npm could not put it beside.
for place in "$package/.." "$package/node_modules/{{scope}}"; do
  [ -x "$place/$name/bin/berth" ] && exec "$place/$name/bin/berth" "$@"
done

case " {{targets}} " in
  *" $system-$processor$libc "*)
    echo "berth: the package {{scope}}/$name with the executable for this system is missing, as after --omit=optional or with a lock file of another system; add it with: npm install --no-save {{scope}}/$name@{{version}}" >&2
    ;;
  *) echo "berth: there is no executable for $system on $processor; there are {{targets}}." >&2 ;;
esac
exit 1
