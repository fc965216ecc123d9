# What shell tests need of berth. Copy this file; "berth run" sets the variables that it reads.

# METHOD PATH [BODY]: one call of the control API; prints the answer.
control() {
  curl -fsS -X "$1" "$BERTH_BASE_URL/_berth$2" \
    -H "Authorization: Bearer $BERTH_ADMIN_TOKEN" -H 'Content-Type: application/json' ${3:+-d "$3"}
}

# The id of the account that BERTH_API_KEY belongs to.
first_account() { berth accounts list --json | sed 's/.*"id":"\(acct_[^"]*\)".*/\1/'; }

# CODE COMMAND…: succeeds when the command fails with this code of the API.
refused() {
  code=$1
  shift
  if said=$("$@" 2>&1); then
    echo "expected it to be refused with $code, but it succeeded"
    return 1
  fi
  echo "$said"
  case $said in *"($code)"*) ;; *) return 1 ;; esac
}

# FILE: runs each function of the file that begins with it_, on an instance that is back to just-started.
run_tests() {
  failures=0
  for name in $(sed -n 's/^\(it_[a-z0-9_]*\)().*/\1/p' "$1"); do
    berth reset >/dev/null
    output=$(
      set -e
      "$name" 2>&1
    )
    if [ $? -eq 0 ]; then
      echo "ok $name"
    else
      failures=$((failures + 1))
      echo "not ok $name"
      [ -z "$output" ] || echo "$output" | sed 's/^/  # /'
    fi
  done
  test "$failures" -eq 0
}
