import { NOUNS } from './nouns/index.ts'

/** What people call a command who know it from another tool, with the command lines after `berth` that do it here. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  attach: ['shell'],
  bash: ['shell'],
  create: ['servers create', 'projects create'],
  delete: ['servers delete', 'projects delete'],
  destroy: ['servers delete', 'projects delete'],
  dev: ['deploy --watch', 'projects push --watch'],
  download: ['cp'],
  info: ['servers', 'doctor'],
  init: ['servers create', 'projects create'],
  kill: ['processes delete'],
  ls: ['servers', 'files list'],
  new: ['servers create', 'projects create'],
  publish: ['deploy'],
  remove: ['servers delete', 'projects delete'],
  rm: ['servers delete', 'projects delete'],
  server: ['servers'],
  sh: ['shell'],
  ssh: ['shell'],
  start: ['serve', 'servers start'],
  status: ['servers', 'doctor'],
  tail: ['logs'],
  upload: ['cp', 'sync'],
  watch: ['deploy --watch', 'projects push --watch'],
}

/** Commands that remove something for good: a mistyped word never leads to one. */
const REMOVING: ReadonlySet<string> = new Set(['reset', 'delete', 'rm', 'clear', 'empty', 'restore'])

/** Nouns that may have a command of the same name before it no longer says what is meant. */
const MOST_MEANT = 3

/**
 * Rewrites a usage error of the library in berth's style.
 *
 * @param first the word that stands where a command's name is expected, right after `berth`; a noun's if another one is
 *   unknown
 */
export const rewriteUsageError = (text: string, first?: string): string =>
  text
    .replace(
      /^error: command-argument value '(.*)' is invalid for argument '(.*)'\. Allowed choices are (.*)\.$/m,
      'error: $2: expected one of $3, got "$1".',
    )
    .replace(
      /unknown command '([^']*)'(?:\n\(Did you mean (?:one of )?([^)]*)\?\))?/,
      (_, word: string, alike?: string) => {
        const meant = meantBy(word, word === first)
        const near = meant.length > 0 ? meant : safeOf(alike)
        const suggested = near.length > 0 || word === first ? near : listOf(first, word)
        const hint = suggested.length === 0 ? '' : `\n(Did you mean ${suggested.join(' or ')}?)`
        return `unknown command '${word}'${hint}`
      },
    )
    .replace(/^error: /, 'berth: ')

/** Returns the command lines, quoted, that a word means which is no command where it stands. */
function meantBy(word: string, isFirst: boolean): string[] {
  const synonyms = isFirst && Object.hasOwn(SYNONYMS, word) ? SYNONYMS[word] : undefined
  if (synonyms) return synonyms.map((line) => `"berth ${line}"`)
  const nouns = NOUNS.filter(({ commands }) => commands.some(({ usage }) => usage.split(' ')[0] === word))
  return nouns.length > MOST_MEANT ? [] : nouns.map(({ name }) => `"berth ${name} ${word}"`)
}

/** Returns the command line, quoted, that lists what the noun has on a server, if a word may be one. */
function listOf(noun: string | undefined, word: string): string[] {
  const { name, commands = [] } = NOUNS.find((one) => one.name === noun) ?? {}
  const list = commands.find(({ usage }) => /^list( \[SERVER\])?$/.test(usage))
  if (list?.usage === 'list [SERVER]') return [`"berth ${name} list ${word}"`]
  return list?.options !== undefined && 'server' in list.options
    ? [`"berth ${name} list --server ${word}"`]
    : []
}

/** Returns the commands that the library finds alike, without those that remove and without short names. */
function safeOf(alike = ''): string[] {
  const names = alike.split(', ').filter((name) => name !== '' && !REMOVING.has(name))
  // The library suggests an alias as if it were another command.
  return names.includes('list') ? names.filter((name) => name !== 'ls') : names
}
