#!/bin/sh
# Installs berth {{version}} into ~/.local/bin, without other rights than yours:
#
#     curl -fsSL https://github.com/{{owner}}/berth/releases/download/v{{version}}/install.sh | sh
#
# BERTH_INSTALL_DIR   another directory
# BERTH_DOWNLOAD_URL  where the archives are, such as a mirror; https, or http on this machine
#
# The hashes of the archives are in this file: a mirror cannot replace them. Nothing happens before the last line is read.
set -u

sums='{{sums}}'

main() {
  base=${BERTH_DOWNLOAD_URL:-https://github.com/{{owner}}/berth/releases/download/v{{version}}}
  base=${base%/}
  case $base in
    *@*) fail "BERTH_DOWNLOAD_URL has a name or a password in it, which other users of this machine could read." ;;
    https://?*) protocol='=https' ;;
    http://127.0.0.1 | http://127.0.0.1[:/]* | http://localhost | http://localhost[:/]* | 'http://[::1]'*) protocol='=http' ;;
    *) fail "BERTH_DOWNLOAD_URL is $base: it must begin with https://, or with http:// and an address of this machine." ;;
  esac
  target=$(target_of_this_machine) || exit 1
  archive=berth-{{version}}-$target.tar.gz
  expected=$(printf '%s\n' "$sums" | sed -n "s/^\([0-9a-f]\{64\}\)  $archive\$/\1/p")
  [ -n "$expected" ] || fail "There is no berth {{version}} for $target. There are: $(printf '%s\n' "$sums" | sed 's/.*berth-{{version}}-\(.*\)\.tar\.gz/\1/' | tr '\n' ' ')"

  directory=${BERTH_INSTALL_DIR:-${HOME:?HOME is not set: name a directory with BERTH_INSTALL_DIR.}/.local/bin}
  mkdir -p "$directory" || fail "$directory cannot be made. Name another directory with BERTH_INSTALL_DIR."
  # In the directory itself, so that the last step is a rename.
  work=$(mktemp -d "$directory/.berth-install-XXXXXX") || fail "Nothing can be written to $directory. Name another directory with BERTH_INSTALL_DIR."
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP

  echo "Downloading $base/$archive" >&2
  download "$base/$archive" "$work/$archive" || fail "$base/$archive cannot be downloaded. Check the network and the proxy, or name another place with BERTH_DOWNLOAD_URL."
  found=$(sha256 "$work/$archive") || exit 1
  [ "$found" = "$expected" ] || fail "$archive has the SHA-256 $found, expected was $expected. The download was cut or changed; nothing was installed. Try again."
  tar -xzf "$work/$archive" -C "$work" || fail "$archive cannot be unpacked. Is the disk full?"
  program=$work/berth-{{version}}-$target/berth
  chmod 755 "$program"
  "$program" version >/dev/null || fail "The executable for $target does not run here. Its messages are above$(musl_hint "$target"); nothing was installed."
  mv -f "$program" "$directory/berth" || fail "$directory/berth cannot be replaced. Name another directory with BERTH_INSTALL_DIR."

  echo "berth {{version}} is $directory/berth" >&2
  case ":$PATH:" in
    *":$directory:"*) ;;
    *) echo "$directory is not in PATH. For this shell: export PATH=\"$directory:\$PATH\"" >&2 ;;
  esac
}

target_of_this_machine() {
  case $(uname -s) in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) fail "berth runs on Linux and macOS, not on $(uname -s). On Windows use WSL 2." ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) processor=x64 loader=x86-64.so.2 ;;
    aarch64 | arm64) processor=arm64 loader=aarch64.so.1 ;;
    *) fail "berth has executables for x64 and arm64, not for $(uname -m)." ;;
  esac
  libc=
  if [ "$system" = linux ] && [ ! -e "/lib/ld-linux-$loader" ] && [ ! -e "/lib64/ld-linux-$loader" ]; then
    for file in /lib/ld-musl-*.so.1; do [ -e "$file" ] && libc=-musl; done
  fi
  echo "$system-$processor$libc"
}

download() {
  if command -v curl >/dev/null 2>&1; then
    curl -fsSL --proto "$protocol" --proto-redir "$protocol" --retry 2 -o "$2" "$1"
  elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$2" "$1"
  else
    fail 'There is no curl and no wget to download with. Install one of them.'
  fi
}

sha256() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  elif command -v openssl >/dev/null 2>&1; then
    openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
  else
    fail 'There is no sha256sum, shasum or openssl to check the download with. Install one of them.'
  fi
}

musl_hint() {
  case $1 in
    *-musl) echo ' (on Alpine it needs: apk add libstdc++)' ;;
  esac
}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

main "$@"
