#!/bin/sh
# Run with: berth run --allow-local-webhooks -- sh test.sh
set -u
cd "$(dirname "$0")"
. ./berth.sh

it_prints_a_url_that_answers() {
  url=$(sh preview.sh site)
  curl -fsS "$url" | grep -q 'All is well.'
}

it_tries_again_when_the_backend_fails_once() { # 502
  berth faults add --operation servers.create --backend-fail --times 1
  sh preview.sh site
}

it_gives_up_when_the_backend_goes_on_failing() { # 502
  berth faults add --operation servers.create --backend-fail
  refused compute_backend_error sh preview.sh site
}

it_tells_that_the_budget_is_used_up() { # 402
  berth faults add --operation deployments.push --error 402
  refused budget_exceeded sh preview.sh site
}

it_tells_that_the_plan_is_too_small_until_the_next_month() { # 403
  berth clock set 2030-01-31T23:00:00Z
  berth accounts update "$(first_account)" --budget-cap 10 --credits-used 10
  refused plan_limit sh preview.sh site
  berth clock advance 2h
  sh preview.sh site
}

it_has_a_signed_event_sent() {
  berth webhooks create "$BERTH_BASE_URL/_berth/inbox/previews" --events deployment.live
  sh preview.sh site
  control GET '/wait?inbox=previews' | grep -q '"verified":true'
}

run_tests "$0"
