import { machineNow } from '../../../runtime/clock.ts'

let last = { second: 0, text: '' }

/** The time as a Date field tells it (RFC 9110, 6.6.1), written anew once a second. */
export function httpDate(): string {
  const second = Math.floor(machineNow() / 1_000)
  if (second !== last.second) last = { second, text: new Date(second * 1_000).toUTCString() }
  return last.text
}
