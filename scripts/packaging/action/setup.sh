#!/bin/sh
# Puts berth {{version}} on PATH for the steps that follow, and starts an instance for them if START is true.
set -eu

directory=$HOME/.cache/berth/{{version}}
if [ ! -x "$directory/berth" ]; then
  [ -z "${DOWNLOAD_URL:-}" ] || export BERTH_DOWNLOAD_URL="$DOWNLOAD_URL"
  BERTH_INSTALL_DIR=$directory sh "$GITHUB_ACTION_PATH/install.sh"
fi
echo "$directory" >>"$GITHUB_PATH"
[ "${START:-false}" = true ] || exit 0

data=$RUNNER_TEMP/berth
# Without its banner, which has the keys. Options are words.
# shellcheck disable=SC2086
"$directory/berth" serve --detach --data "$data" --port 0 ${OPTIONS:-} >/dev/null
echo "BERTH_DATA=$data" >>"$GITHUB_ENV"
"$directory/berth" env --shell bash --data "$data" | while IFS= read -r line; do
  pair=$(printf '%s\n' "$line" | sed "s/^export //; s/='\(.*\)'\$/=\1/")
  case $pair in
    BERTH_API_KEY=* | BERTH_ADMIN_TOKEN=*) echo "::add-mask::${pair#*=}" ;;
  esac
  printf '%s\n' "$pair" >>"$GITHUB_ENV"
done
