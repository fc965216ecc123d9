import type { Client } from './client.ts'
import { CommandError } from './errors.ts'
import { count, printable, shorten } from './output.ts'

/** A thing of a running instance, as commands name it. */
export interface Named {
  readonly id: string
  /** What else it is called: its label, slug or name. The first one wins over the other names of others. */
  readonly names?: readonly string[]
  /** What a person knows it by, for completion and for messages. */
  readonly description: string
  /** Where it is, for a thing with files on a server. */
  readonly place?: ServerPlace
}

/** A directory of a server. */
export interface ServerPlace {
  readonly serverId: string
  /** Relative to the workspace; undefined for the workspace itself. */
  readonly directory: string | undefined
}

/** The part of a thing that names are compared with. */
type Nameable = Pick<Named, 'id' | 'names'>

/** The things that a placeholder of usages means, such as `SERVER` in `get <SERVER>`. */
export interface NameSource {
  readonly placeholder: string
  /** Whether the placeholder accepts several, separated by commas. */
  readonly isCommaSeparated?: true
  /** How a message speaks of them; null if what is typed reaches the command as it is. */
  readonly words: NameWords | null
  list(client: Client, signal?: AbortSignal): Promise<Named[]>
}

/** A source and the access that its list needs. */
export type AccessibleSource = NameSource & { readonly access: 'api' | 'control' }

/** What can be named, by the placeholders of usages. */
export type NameSources = ReadonlyMap<string, AccessibleSource>

/** The words of messages about one kind of things. */
export interface NameWords {
  /** One of them, such as `server`. */
  readonly one: string
  /** What it may be named by besides its id, such as `label`. */
  readonly by?: readonly string[]
  /** The command that lists them. */
  readonly listedBy: string
  /** What makes the first one, as a sentence. */
  readonly none: string
}

/** Matches a whole id: the prefix of its kind, and a ULID. */
const WHOLE_ID = /^[a-z]+_[0-9a-hjkmnp-tv-z]{26}$/

/** Characters of an id's time (ULID), after the prefix of its kind. */
export const ID_TIME_END = 10

/** Returns an id as people read it: cut after its time. */
export const briefId = (id: string, characters = ID_TIME_END): string =>
  id.slice(0, id.indexOf('_') + 1 + characters)

/** Characters of an id, without the prefix of its kind, that are taken for the beginning of one. */
const SHORTEST_BARE_PREFIX = 4

/** Characters of a name in such a list. */
const MOST_NAME = 40

/** Things that a message lists. */
const MOST_LISTED = 5

/** Reports whether a text is a whole id, which needs no look-up. */
export const isWholeId = (given: string): boolean => WHOLE_ID.test(given)

/**
 * Returns the thing that a person means: by its id; else by the first of its names, such as a slug; else by another of
 * them; else by the beginning of its id, with or without the prefix of its kind. Returns null if nothing matches.
 *
 * @throws CommandError if more than one matches in the same way; the message lists what does
 */
export function findNamed<Thing extends Nameable>(
  all: readonly Thing[],
  given: string,
  words: NameWords,
): Thing | null {
  const beginning = given.toLowerCase()
  const [by = 'name'] = words.by ?? []
  const ways: readonly { matches: (one: Thing) => boolean; remedy: string }[] = [
    { matches: ({ id }) => id === given, remedy: 'its id' },
    { matches: ({ names = [] }) => names[0] === given, remedy: 'its id' },
    { matches: ({ names = [] }) => names.includes(given), remedy: `its id or ${by}` },
    { matches: ({ id }) => beginsWith(id, beginning), remedy: 'its id, or by more of it' },
  ]
  for (const { matches, remedy } of ways) {
    const [only, ...others] = all.filter(matches)
    if (only === undefined) continue
    if (others.length === 0) return only
    throw new CommandError(
      `${JSON.stringify(given)} may mean ${listed([only, ...others])}. Name the ${words.one} by ${remedy}.`,
    )
  }
  return null
}

/** Returns the error for a name that nothing has. @param hint ends its message */
export function unknownName(given: string, { one, by = [], listedBy }: NameWords, hint = ''): CommandError {
  const named = JSON.stringify(given)
  const last = by.at(-1)
  const what =
    last === undefined
      ? `No ${one} has the id ${named}`
      : `No ${one} has ${named} as its ${['id', ...by.slice(0, -1)].join(', ')} or ${last}`
  return new CommandError(`${what}. "${listedBy}" lists those there are.${hint}`)
}

/**
 * Returns the only thing, for a person who names none.
 *
 * @param how says how one is named, such as `with --server SERVER`
 * @throws CommandError if there is none, or more than one
 */
export function pickOnly<Thing extends Nameable>(
  all: readonly Thing[],
  words: NameWords,
  how: string,
): Thing {
  const [only, ...others] = all
  if (only === undefined) throw new CommandError(`There is no ${words.one} yet. ${words.none}`)
  if (others.length === 0) return only
  throw new CommandError(
    `There are ${count(all.length, words.one)}: ${listed(all)}. Say which one is meant ${how}.`,
  )
}

/**
 * Returns the thing that a person means, or the only one if nothing is given.
 *
 * @param placeholder of the argument, for the message
 * @throws CommandError if nothing or more than one matches
 */
export function pick<Thing extends Nameable>(
  all: readonly Thing[],
  given: string | undefined,
  words: NameWords,
  placeholder: string,
): Thing {
  if (given === undefined) return pickOnly(all, words, `as ${placeholder}`)
  const found = findNamed(all, given, words)
  if (found === null) throw unknownName(given, words)
  return found
}

function beginsWith(id: string, beginning: string): boolean {
  const bare = id.slice(id.indexOf('_') + 1)
  const isPrefixed = beginning.length >= id.length - bare.length
  if (isPrefixed && id.startsWith(beginning)) return true
  return beginning.length >= SHORTEST_BARE_PREFIX && bare.startsWith(beginning)
}

function listed(things: readonly Nameable[]): string {
  const shown = things.slice(0, MOST_LISTED).map(({ id, names = [] }) => {
    const known = names.filter((name) => name !== '')
    return known.length > 0
      ? `${id} (${printable(known.map((name) => shorten(name, MOST_NAME)).join(', '))})`
      : id
  })
  return `${shown.join(', ')}${things.length > MOST_LISTED ? ', …' : ''}`
}
