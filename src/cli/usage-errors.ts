import { nearest } from '../runtime/validation/nearest.ts'
import type { CommandSpec, Noun } from './command.ts'

/** What people call a command who know it from another tool, with the command lines after `berth` that do it here. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  attach: ['shell --attach'],
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

/** Names that other tools give a noun's commands, with the names that these have here. */
export const COMMAND_SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  add: ['create', 'set'],
  describe: ['get', 'list'],
  destroy: ['delete'],
  get: ['list'],
  info: ['get'],
  inspect: ['get'],
  kill: ['delete'],
  new: ['create'],
  remove: ['delete'],
  rm: ['delete'],
  show: ['get', 'list'],
  stop: ['cancel'],
  view: ['get'],
}

/** Most commands of a noun that are listed where a word names no command. @bound reader */
const MOST_LISTED = 8

/** Commands that remove something for good: a mistyped word never leads to one. */
const REMOVING: ReadonlySet<string> = new Set(['reset', 'delete', 'rm', 'clear', 'empty', 'restore'])

/** Nouns that may have a command of the same name before it no longer says what is meant. @bound reader */
const MOST_MEANT = 3

/**
 * Rewrites a usage error of the library in berth's style.
 *
 * @param first the word in the place of a command's name, right after `berth`; a noun's if another one is
 *   unknown
 */
export function rewriteUsageError(text: string, nouns: readonly Noun[], first?: string): string {
  const noun = nouns.find(
    ({ name, aliases = [] }) => first !== undefined && [name, ...aliases].includes(first),
  )
  return text
    .replace(
      /^error: command-argument value '(.*)' is invalid for argument '(.*)'\. Allowed choices are (.*)\.$/m,
      'error: $2: expected one of $3, got "$1".',
    )
    .replace(
      /unknown command '([^']*)'(?:\n\(Did you mean (?:one of )?([^)]*)\?\))?/,
      (_, word: string, alike?: string) => {
        const isFirst = word === first
        const suggested = [
          () => (isFirst ? [] : synonymOf(noun, word)),
          () => meantBy(nouns, word),
          () => safeOf(word, alike),
          () => (isFirst ? [] : listOf(noun, word)),
        ].reduce<string[]>((found, find) => (found.length > 0 ? found : find()), [])
        const hint = suggested.length > 0 ? didYouMean(suggested) : isFirst ? '' : choicesOf(noun)
        return `unknown command '${word}'${hint}`
      },
    )
    .replace(/^error: /, 'berth: ')
}

const didYouMean = (suggested: readonly string[]): string => `\n(Did you mean ${suggested.join(' or ')}?)`

const nameOf = ({ usage }: Pick<CommandSpec, 'usage'>): string => usage.split(' ')[0] ?? ''

/** Returns the command line, quoted, that does what a word asks of a noun that has another name for it. */
function synonymOf(noun: Noun | undefined, word: string): string[] {
  const names = noun?.commands.map(nameOf) ?? []
  const synonyms = Object.hasOwn(COMMAND_SYNONYMS, word) ? (COMMAND_SYNONYMS[word] ?? []) : []
  const name = synonyms.find((one) => names.includes(one))
  return name === undefined ? [] : [`"berth ${noun?.name} ${name}"`]
}

/** Returns a line with the commands that a noun has, if they are few. */
function choicesOf(noun: Noun | undefined): string {
  const names = noun?.commands.map(nameOf) ?? []
  if (names.length === 0 || names.length > MOST_LISTED) return ''
  return `\n(Its commands are ${names.join(', ')}.)`
}

/** Returns the command lines, quoted, that a word means where it names no command. */
function meantBy(nouns: readonly Noun[], word: string): string[] {
  const synonyms = Object.hasOwn(SYNONYMS, word) ? SYNONYMS[word] : undefined
  if (synonyms) return synonyms.map((line) => `"berth ${line}"`)
  const meant = nouns.filter(({ commands }) => commands.some((one) => nameOf(one) === word))
  return meant.length > MOST_MEANT ? [] : meant.map(({ name }) => `"berth ${name} ${word}"`)
}

/** Returns the command line, quoted, that lists what the noun has on a server, if a word may be one. */
function listOf(
  { name, commands }: Pick<Noun, 'name' | 'commands'> = { name: '', commands: [] },
  word: string,
): string[] {
  const list = commands.find((one) => nameOf(one) === 'list')
  if (list?.usage === 'list [SERVER]') return [`"berth ${name} list ${word}"`]
  return list?.usage === 'list' && list.options !== undefined && 'server' in list.options
    ? [`"berth ${name} list --server ${word}"`]
    : []
}

/**
 * Returns the commands that the library finds alike, without those that remove and without short names. Words as far from
 * each other as "nope" and "open" are not alike: berth measures more strictly.
 */
function safeOf(word: string, alike = ''): string[] {
  const names = nearest(word, alike.split(', ')).filter((name) => name !== '' && !REMOVING.has(name))
  // The library suggests an alias as if it were another command.
  return names.includes('list') ? names.filter((name) => name !== 'ls') : names
}
