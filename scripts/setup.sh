# Sourced by every script here: goes to the repository's root, finds or fetches the right Bun, installs
# what the lock file names. Speaks on stderr only.

cd "$(dirname "$0")/.." || exit 1
root=$PWD
wanted=$(sed -n 's/.*"bun": "\([0-9.]*\)".*/\1/p' package.json | head -n 1)

say() { printf '%s\n' "$*" >&2; }

# Bun by version: a machine's own where it is the right one, else a copy below node_modules.
find_bun() {
  fetched=$root/node_modules/.cache/bun-$wanted/node_modules/.bin
  for candidate in "$(command -v bun 2>/dev/null)" "$fetched/bun"; do
    if [ -n "$candidate" ] && [ "$("$candidate" --version 2>/dev/null)" = "$wanted" ]; then
      bun=$candidate
      return 0
    fi
  done
  return 1
}

if ! find_bun; then
  if ! command -v npm >/dev/null 2>&1; then
    say "berth is built with Bun $wanted, which is not here, and there is no npm to fetch it. Install Node.js with npm, or Bun $wanted."
    exit 1
  fi
  say "Fetching Bun $wanted …"
  npm install --prefix "node_modules/.cache/bun-$wanted" --no-save --no-audit --no-fund --loglevel=error "bun@$wanted" >&2
  if ! find_bun; then
    say "Bun $wanted could not be fetched. Check npm's registry and proxy settings, or install Bun $wanted yourself."
    exit 1
  fi
fi
PATH=$(dirname "$bun"):$PATH
export PATH

if ! cmp -s bun.lock node_modules/.cache/installed.lock; then
  say "Installing dependencies …"
  bun install --frozen-lockfile >&2 || exit 1
  mkdir -p node_modules/.cache && cp bun.lock node_modules/.cache/installed.lock
fi
