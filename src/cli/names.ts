import { machineNow } from '../runtime/clock.ts'
import type { Client } from './client.ts'
import { CommandError, NothingYetError } from './errors.ts'
import { count, printable, shorten } from './output.ts'
import { timeAgo } from './table.ts'

/** A thing of a running instance, as commands name it. */
export interface Named {
  readonly id: string
  /** What else it is called: its label, slug or name. The first one wins over the other names of others. */
  readonly names?: readonly string[]
  /** What distinguishes it from others of its name, such as `running`, for messages. */
  readonly state?: string
  /** ISO 8601, for messages. */
  readonly createdAt?: string | null | undefined
  /** What a person knows it by, for completion. */
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
type Nameable = Pick<Named, 'id' | 'names' | 'state' | 'createdAt'>

/** The things that a placeholder of usages means, such as `SERVER` in `get <SERVER>`. */
export interface NameSource {
  readonly placeholder: string
  /** Whether the placeholder accepts several, separated by commas. */
  readonly isCommaSeparated?: true
  /** How a message speaks of them; null if what is typed reaches the command as it is. */
  readonly words: NameWords | null
  list(client: Client, signal?: AbortSignal): Promise<Named[]>
}

/**
 * Returns a list for a `NameSource` of things that have a name or a label.
 *
 * @param field that has it
 * @param read lists the things
 */
export const namedBy =
  <Field extends string>(
    field: Field,
    read: (
      client: Client,
      signal?: AbortSignal,
    ) => Promise<readonly ({ id: string; created_at: string } & Record<Field, string>)[]>,
  ): NameSource['list'] =>
  async (client, signal) =>
    (await read(client, signal)).map((one) => ({
      ...{ id: one.id, names: [one[field]], description: one[field], createdAt: one.created_at },
    }))

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

/** Characters of an id, without the prefix of its kind, that are taken for the beginning of one. */
const SHORTEST_BARE_PREFIX = 4

/** Characters of a name in such a list. @bound reader */
const MOST_NAME = 40

/** Things that a message lists. @bound reader */
const MOST_LISTED = 10

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
  stateOf = stateIn<Thing>,
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
      `${JSON.stringify(given)} may mean ${count(others.length + 1, words.one)}. Name the ${words.one} by ${remedy}.\n${listed([only, ...others], words, stateOf)}`,
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
 * @throws NothingYetError if there is none; CommandError if there is more than one
 */
export function pickOnly<Thing extends Nameable>(
  all: readonly Thing[],
  words: NameWords,
  how: string,
  stateOf = stateIn<Thing>,
): Thing {
  const [only, ...others] = all
  if (only === undefined) throw new NothingYetError(`There is no ${words.one} yet. ${words.none}`)
  if (others.length === 0) return only
  throw new CommandError(
    `There are ${count(all.length, words.one)}. Say which one is meant ${how}.\n${listed(all, words, stateOf)}`,
  )
}

/**
 * Returns the thing that a person means, or the only one if nothing is given.
 *
 * @param placeholder of the argument, for the message
 * @param stateOf returns what distinguishes one from others of its name
 * @throws CommandError if nothing or more than one matches
 */
export function pick<Thing extends Nameable>(
  all: readonly Thing[],
  given: string | undefined,
  words: NameWords,
  placeholder: string,
  stateOf = stateIn<Thing>,
): Thing {
  if (given === undefined) return pickOnly(all, words, `as ${placeholder}`, stateOf)
  const found = findNamed(all, given, words, stateOf)
  if (found === null) throw unknownName(given, words)
  return found
}

function beginsWith(id: string, beginning: string): boolean {
  const bare = id.slice(id.indexOf('_') + 1)
  const isPrefixed = beginning.length >= id.length - bare.length
  if (isPrefixed && id.startsWith(beginning)) return true
  return beginning.length >= SHORTEST_BARE_PREFIX && bare.startsWith(beginning)
}

const stateIn = <Thing extends Nameable>({ state = '' }: Thing): string => state

/** Returns a line for each thing: its id, its names, its state and its age. */
function listed<Thing extends Nameable>(
  things: readonly Thing[],
  { listedBy }: NameWords,
  stateOf: (thing: Thing) => string,
): string {
  const shown = things.slice(0, MOST_LISTED).map((thing) => {
    const { id, names = [], createdAt } = thing
    const known = names.filter((name) => name !== '').map((name) => shorten(printable(name), MOST_NAME))
    const age = createdAt ? `created ${timeAgo(createdAt, machineNow())}` : ''
    const state = shorten(printable(stateOf(thing)), MOST_NAME)
    return {
      cells: [id, known.length > 0 ? `(${known.join(', ')})` : ''],
      end: [state, age].filter(Boolean).join(', '),
    }
  })
  const widths = [0, 1].map((at) => Math.max(...shown.map(({ cells }) => Bun.stringWidth(cells[at] ?? ''))))
  const padded = (cell: string, at: number): string =>
    cell + ' '.repeat((widths[at] ?? 0) - Bun.stringWidth(cell))
  const lines = shown.map(({ cells, end }) => {
    const filled = cells.flatMap((cell, at) => (widths[at] === 0 ? [] : [padded(cell, at)]))
    return `  ${[...filled, end].join('  ')}`.trimEnd()
  })
  const more = things.length - lines.length
  return [...lines, ...(more > 0 ? [`  and ${more} more: ${listedBy}`] : [])].join('\n')
}
