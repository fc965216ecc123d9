import { machineNow } from '../runtime/clock.ts'
import type { OutputStream } from './process-context.ts'
import { CONTROL, STYLE_CODES } from './terminal-text.ts'

/** A colour or weight for text on a terminal. */
export type Style = keyof typeof STYLE_CODES

/** Colours text, if the stream supports colours. */
export const paint = (out: OutputStream, style: Style, text: string): string =>
  out.hasColors && text !== '' ? `\u001b[${STYLE_CODES[style]}m${text}\u001b[0m` : text

/** Replaces control characters in text from elsewhere, so it cannot move the cursor or hide a line. */
export const printable = (text: string): string => text.replace(CONTROL, '�')

/** Returns facts about one thing as aligned `label  value` lines, with a final newline. */
export function facts(
  out: OutputStream,
  entries: ReadonlyArray<readonly [label: string, value: string]>,
): string {
  const width = Math.max(...entries.map(([label]) => label.length))
  return entries
    .map(([label, value]) => `${paint(out, 'dim', label.padEnd(width))}  ${printable(value)}\n`)
    .join('')
}

/** Formats a number of bytes for people: `812 bytes`, `3.4 KB`, `1.2 MB`, `4.3 GB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return count(bytes, 'byte')
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} KB`
  return bytes < 1e9 ? `${(bytes / 1_000_000).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`
}

/** Formats a time that something has taken: `339 ms`, `1.3 s`, `27 s`, `2 min 5 s`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** Returns the time by this machine's clock and zone, `14:02:11`: the instance's clock may be frozen. */
export const timeOfDay = (): string => new Date(machineNow()).toTimeString().slice(0, 8)

/** Shortens a text to at most `length` characters. A shortened one ends with `…`. */
export function shorten(text: string, length: number): string {
  const characters = Array.from(text.slice(0, 2 * length))
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join('')}…`
}

/** Formats a number with its noun: `1 file`, `2 files`. */
export const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`

/** Prints a value as one line of JSON, in which controls are escaped: JSON itself lets some of them stand. */
export const printJson = (out: OutputStream, value: unknown): Promise<void> =>
  out.write(`${JSON.stringify(value).replace(CONTROL, escaped)}\n`)

const escaped = (control: string): string => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * Prints a result: as a line of JSON with `json`, else as text for people.
 *
 * @param show returns the result as text or bytes; called only without `json`
 */
export async function printResult<Result>(
  out: OutputStream,
  json: boolean | undefined,
  result: Result,
  show: (result: Result) => string | Uint8Array | Promise<string | Uint8Array>,
): Promise<void> {
  if (json) await printJson(out, result)
  else await out.write(await show(result))
}
