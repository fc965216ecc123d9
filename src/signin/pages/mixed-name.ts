/** Scripts that have letters which look like those of the others. */
const LOOKALIKES = [
  ['Latin', /\p{Script=Latin}/u],
  ['Cyrillic', /\p{Script=Cyrillic}/u],
  ['Greek', /\p{Script=Greek}/u],
] as const

/**
 * The scripts that a word of a name mixes, as in "Claude" with a Cyrillic C; null where each word keeps to one, as names
 * that nobody means to imitate do (Unicode, UTS 39, 5.1).
 */
export function mixedScripts(name: string): string[] | null {
  for (const word of name.match(/[\p{L}\p{M}\p{N}_]+/gu) ?? []) {
    const scripts = LOOKALIKES.filter(([, pattern]) => pattern.test(word)).map(([script]) => script)
    if (scripts.length > 1) return scripts
  }
  return null
}
