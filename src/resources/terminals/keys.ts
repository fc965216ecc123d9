import type { InputModes } from '../../compute/emulators/emulators.ts'

/** What is to be typed. */
export interface TypedInput {
  /** Typed first. */
  readonly text: string
  /** Names of keys, pressed after it. */
  readonly keys: readonly string[]
  /** Whether the text is pasted. */
  readonly isPaste: boolean
}

const ESCAPE = '\x1b'

/** Keys that send one character. */
const CHARACTERS: Readonly<Record<string, string>> = {
  enter: '\r',
  return: '\r',
  tab: '\t',
  space: ' ',
  escape: ESCAPE,
  esc: ESCAPE,
  backspace: '\x7f',
}

/** Keys that send `CSI X`, or `SS3 X` where a program asks for it (xterm, "PC-Style Function Keys"). */
const CURSOR_KEYS: Readonly<Record<string, string>> = {
  up: 'A',
  down: 'B',
  right: 'C',
  left: 'D',
  end: 'F',
  home: 'H',
}

/** Keys that send `SS3 X`. */
const FIRST_FUNCTION_KEYS: Readonly<Record<string, string>> = { f1: 'P', f2: 'Q', f3: 'R', f4: 'S' }

/** Keys that send `CSI n ~`. */
const NUMBERED_KEYS: Readonly<Record<string, number>> = {
  insert: 2,
  delete: 3,
  pageup: 5,
  pagedown: 6,
  f5: 15,
  f6: 17,
  f7: 18,
  f8: 19,
  f9: 20,
  f10: 21,
  f11: 23,
  f12: 24,
}

/** The names of keys, as documents list them. */
export const KEY_NAMES = [
  'enter, tab, space, escape, backspace, delete, insert, up, down, left, right, home, end, pageup, pagedown, f1 to f12',
  'any single character, and these with ctrl-, alt- or shift- before them: ctrl-c, alt-f, shift-tab, ctrl-left',
].join('; ')

const KEY = /^((?:(?:ctrl|alt|shift)[-+])*)(.+)$/isu

/**
 * Returns the bytes that a keyboard sends for typed input.
 *
 * @returns the name of the first key that there is not, if there is one
 */
export function encodeInput(
  { text, keys, isPaste }: TypedInput,
  modes: InputModes,
): { readonly bytes: Uint8Array } | { readonly unknown: string } {
  // The Enter key sends a carriage return.
  const lines = text.replaceAll('\r\n', '\r').replaceAll('\n', '\r')
  // The end mark within the text would end the paste early.
  const typed =
    isPaste && modes.paste ? `${ESCAPE}[200~${lines.replaceAll(`${ESCAPE}[201~`, '')}${ESCAPE}[201~` : lines
  const sent = [typed]
  for (const key of keys) {
    const sequence = keySequence(key, modes)
    if (sequence === null) return { unknown: key }
    sent.push(sequence)
  }
  return { bytes: new TextEncoder().encode(sent.join('')) }
}

/** Returns what a key sends; null if there is none of that name. */
function keySequence(key: string, { cursorKeys }: InputModes): string | null {
  const [, prefix = '', rest = ''] = KEY.exec(key) ?? []
  const modifiers = prefix.toLowerCase()
  const [ctrl, alt, shift] = ['ctrl', 'alt', 'shift'].map((one) => modifiers.includes(one))
  const name = rest.toLowerCase()
  // xterm, "PC-Style Function Keys": one more than the sum of what is held.
  const held = 1 + (shift ? 1 : 0) + (alt ? 2 : 0) + (ctrl ? 4 : 0)
  const letter = CURSOR_KEYS[name]
  if (letter !== undefined)
    return held > 1 ? `${ESCAPE}[1;${held}${letter}` : `${ESCAPE}${cursorKeys ? 'O' : '['}${letter}`
  const first = FIRST_FUNCTION_KEYS[name]
  if (first !== undefined) return held > 1 ? `${ESCAPE}[1;${held}${first}` : `${ESCAPE}O${first}`
  const number = NUMBERED_KEYS[name]
  if (number !== undefined) return `${ESCAPE}[${number}${held > 1 ? `;${held}` : ''}~`
  if (name === 'tab' && shift) return `${ESCAPE}[Z`
  const character = CHARACTERS[name] ?? ([...rest].length === 1 ? rest : null)
  if (character === null) return null
  const shifted = shift ? character.toUpperCase() : character
  const sent = ctrl ? controlCharacter(shifted) : shifted
  return sent === null ? null : `${alt ? ESCAPE : ''}${sent}`
}

/** Returns what a character sends with Ctrl; null if nothing. */
function controlCharacter(character: string): string | null {
  if (character === '\x7f') return '\b'
  if (character === ' ') return '\0'
  if (character === '/') return '\x1f'
  if (character < ' ') return character
  const code = character.toUpperCase().charCodeAt(0)
  // `@`, the letters, and `[ \ ] ^ _`.
  return character.length === 1 && code >= 0x40 && code <= 0x5f ? String.fromCharCode(code - 0x40) : null
}
