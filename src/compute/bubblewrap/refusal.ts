import { existsSync } from 'node:fs'
import { readTextOrNull } from '../../runtime/read-text.ts'

/** Why an isolation cannot be used, and what a person can do about it. */
interface Refusal {
  reason: string
  remedy: string
}

/** bwrap is not installed. */
export const MISSING: Refusal = {
  reason: 'bubblewrap is not installed: there is no bwrap on PATH.',
  remedy:
    'Install it: apt-get install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap or apk add bubblewrap.',
}

/** Turns bwrap's error output into cause and remedy. */
export function explainFailure(said: string): Refusal {
  const reason = `bwrap failed: ${said === '' ? 'it said nothing' : said}`
  if (/mount proc|proc on .*newroot/i.test(said)) {
    return {
      reason,
      remedy:
        'A /proc of its own may not be mounted, as in an unprivileged container: start the container with --security-opt systempaths=unconfined.',
    }
  }
  if (!/namespace|Operation not permitted|Permission denied|uid map|No space/i.test(said)) {
    return { reason, remedy: 'Run the same bwrap by hand to see more; a newer bubblewrap may help.' }
  }
  if (setting('apparmor_restrict_unprivileged_userns') === '1') {
    return {
      reason,
      remedy:
        'AppArmor keeps programs from making user namespaces. Allow it to bwrap with a profile (apt-get install apparmor-profiles has one), or for all: sysctl kernel.apparmor_restrict_unprivileged_userns=0.',
    }
  }
  if (setting('unprivileged_userns_clone') === '0') {
    return { reason, remedy: 'User namespaces are switched off: sysctl kernel.unprivileged_userns_clone=1.' }
  }
  if (existsSync('/.dockerenv') || existsSync('/run/.containerenv')) {
    return {
      reason,
      remedy:
        'The container forbids namespaces: start it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined (and apparmor=unconfined on Ubuntu).',
    }
  }
  return {
    reason,
    remedy:
      'User namespaces are refused: look at sysctl user.max_user_namespaces, and at the seccomp profile of a container.',
  }
}

const setting = (name: string): string | undefined => readTextOrNull(`/proc/sys/kernel/${name}`)?.trim()
