import { basename } from 'node:path'
import type { ComputeName } from '../../config/compute.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import { systemRandom } from '../../runtime/random.ts'
import { NO_WISH, type ServerHandle, type ServerWish } from '../driver.ts'
import { ComputeError } from '../sandbox.ts'
import type { EngineLabels, EngineName } from './engine.ts'

/** What a driver of an engine created for one server. */
export interface EngineHandle extends ServerHandle {
  readonly kind: 'engine'
  readonly compute: EngineName
  /** The engine's own id: another one at the same address does not have the files. */
  readonly engine: string
  /** Name of the storage. A server has another one in each state of the data directory. */
  readonly storage: string
  /** The server's id. */
  readonly server: string
  /** The image that was chosen for it; null for the driver's. */
  readonly image: string | null
  /** Whether its commands are root in its instance. */
  readonly root: boolean
  /** Numeric user of its commands, 0 for root; absent for `SERVER_USER`. */
  readonly user?: number
}

/** Returns a handle as what a driver of an engine made. Throws `ComputeError` if another kind of driver did. */
export function engineHandle(handle: ServerHandle, compute: EngineName): EngineHandle {
  if (isEngineHandle(handle) && handle.compute === compute) return handle
  throw filesElsewhere(handle, compute)
}

/** Returns the error of a server whose files are where another compute has them. @param here what this berth runs with */
export function filesElsewhere(handle: ServerHandle, here: ComputeName): ComputeError {
  const there = computeOf(handle)
  const id = isEngineHandle(handle) ? handle.server : basename(String(handle.folder))
  return new ComputeError(
    `The server's files are where --compute ${there} keeps them, and this berth runs with --compute ${here}. Move them: berth servers move ${id} --to ${here}. Or start berth with --compute ${there}.`,
  )
}

/** Returns what runs the server of a handle. */
export const computeOf = (handle: ServerHandle): ComputeName =>
  isEngineHandle(handle) ? handle.compute : 'local'

/** Returns what a server was made with. */
export const wishOf = (handle: ServerHandle): ServerWish =>
  isEngineHandle(handle) ? { image: handle.image, root: handle.root } : NO_WISH

/** Reports whether a driver of an engine made a handle. */
export const isEngineHandle = (handle: ServerHandle): handle is EngineHandle =>
  handle.kind === 'engine' && typeof handle.storage === 'string' && typeof handle.server === 'string'

/** Returns a new name of a storage or an instance, which every engine takes: 63 of a-z, 0-9 and - at most. */
export function newName(owner: string, serverId: string): string {
  const readable = serverId
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 28)
  const unique = Buffer.from(systemRandom.bytes(4)).toString('hex')
  return `berth-${owner.slice(0, 8)}-${readable}-${unique}`
}

/**
 * Returns a user for a server, which others on its machine hardly have. It is neither one of a system or of a person, nor has
 * it more than the six digits that archives of ar(1) have room for.
 */
export const newUser = (): number => 200_000 + (Buffer.from(systemRandom.bytes(4)).readUInt32LE() % 800_000)

/** Returns the reference of berth's own image of servers. */
export const ownImage = (version: string): string => `berth-server:${version}`

/** Reports whether an image is berth's own, of any registry, which has the executable and the tools. */
export const isOwnImage = (reference: string): boolean => /(?:^|\/)berth-server(?:[:@]|$)/.test(reference)

/** Returns labels as an engine keeps them: each has a prefix. */
export const labelsToText = (prefix: string, labels: EngineLabels): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).map(([name, value]) => [prefix + name, String(value)]))

/** Returns the labels of what an engine has. */
export function labelsFromText(prefix: string, labels: unknown): EngineLabels {
  const text = (name: keyof EngineLabels): string => String(fieldsOf(labels)[prefix + name] ?? '')
  return { owner: text('owner'), server: text('server'), ephemeral: text('ephemeral') === 'true' }
}

/** Returns the first hex digits of the hash of a text. */
export const digestOf = (text: string, digits: 8 | 16 | 32): string =>
  new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, digits)
