import { utf8Text } from '../../runtime/decode.ts'
import { fieldsOf } from '../../runtime/is-object.ts'
import {
  type CommandActivity,
  ComputeError,
  type ListeningAddress,
  type ServerConsumption,
} from '../sandbox.ts'
import type { DirectoryEntry, ManifestEntry, WorkspaceEntry, WorkspaceFile } from '../workspace.ts'

/** Most addresses taken from one response. @bound program */
const MAX_ADDRESSES = 10_000

/** Most bytes of a list of paths, or of a directory's entries, that are taken. @bound program */
export const MAX_LIST_BYTES = 64 * 1024 * 1024

/** @bound program */
const MAX_IDENTITY = 200

const SHA256 = /^[0-9a-f]{64}$/

const KINDS = { f: 'file', d: 'directory', o: 'other' } as const

/** Reads a response of `activity`. Throws `ComputeError` if it is none. */
export function decodeActivity(value: unknown): CommandActivity {
  const { listening, cpuMs } = fieldsOf(value)
  if (!isTime(cpuMs) || cpuMs < 0) throw wrongResponse('activity')
  return { listening: listening === null ? null : readAddresses(listening), cpuMs }
}

function readAddresses(value: unknown): ListeningAddress[] {
  if (!Array.isArray(value) || value.length > MAX_ADDRESSES) throw wrongResponse('activity')
  return value.map((entry: unknown) => {
    const { host, port, isDebugger } = fieldsOf(entry)
    const isAddress = host === '127.0.0.1' || host === '::1'
    if (!isAddress || !isCount(port) || port < 1 || port > 65_535) throw wrongResponse('activity')
    return { host, port, ...(isDebugger === true && { isDebugger }) }
  })
}

/** Reads the paths that `list` streams: sorted, each once, and below the workspace. Throws `ComputeError`. */
export function readPaths(bytes: Uint8Array): string[] {
  const paths = readList('list', bytes)
  let previous = ''
  for (const path of paths) {
    const isSorted = compare(previous, path) < 0
    if (!isSorted || !isPathBelow(path)) throw wrongResponse('list')
    previous = path
  }
  return paths
}

/** Reads what `entries` streams. Throws `ComputeError`. */
export function readEntries(bytes: Uint8Array): DirectoryEntry[] {
  let previous = ''
  return readList('entries', bytes).map((text) => {
    const kind = KINDS[text.slice(0, 1) as keyof typeof KINDS]
    const name = text.slice(1)
    const isEntry = kind !== undefined && isName(name) && !name.includes('/')
    if (!isEntry || compare(previous, name) >= 0) throw wrongResponse('entries')
    previous = name
    return { name, kind }
  })
}

/**
 * Reads what `manifest` streams: only paths that were asked for, sorted, each once, and below the directory. Throws
 * `ComputeError`.
 */
export function decodeManifest(bytes: Uint8Array, paths: readonly string[] | null): ManifestEntry[] {
  const wanted = paths === null ? null : new Set(paths)
  let previous = ''
  return readJsonList('manifest', bytes).map((value) => {
    const { kind, path, size, sha256, executable, target } = fieldsOf(value)
    const isWanted = typeof path === 'string' && isPathBelow(path) && (wanted?.has(path) ?? true)
    if (!isWanted || compare(previous, path) >= 0) throw wrongResponse('manifest')
    previous = path
    if (kind === 'link' && typeof target === 'string') return { kind, path, target }
    const isFile = kind === 'file' && isCount(size) && typeof executable === 'boolean'
    if (!isFile || typeof sha256 !== 'string' || !SHA256.test(sha256)) throw wrongResponse('manifest')
    return { kind, path, size, sha256, executable }
  })
}

/** Reads a response of `stat`. Throws `ComputeError`. */
export function decodeEntry(value: unknown): WorkspaceEntry | null {
  if (value === null) return null
  const { kind, size } = fieldsOf(value)
  const isKind = kind === 'file' || kind === 'directory' || kind === 'other'
  if (!isKind || !isCount(size)) throw wrongResponse('stat')
  return { kind, size }
}

/** Reads a response of `read`. Throws `ComputeError`. */
export function readSize(value: unknown): number {
  const { size } = fieldsOf(value)
  if (!isCount(size)) throw wrongResponse('read')
  return size
}

/** Reads a response of `open`. Throws `ComputeError`. */
export function readFileFacts(value: unknown): Omit<WorkspaceFile, 'read' | typeof Symbol.dispose> {
  const { size, mode, modifiedAt, changedAt, identity } = fieldsOf(value)
  const isIdentity = typeof identity === 'string' && identity.length <= MAX_IDENTITY
  const isMode = isCount(mode) && mode <= 0o777
  if (!isCount(size) || !isMode || !isTime(modifiedAt) || !isTime(changedAt) || !isIdentity)
    throw wrongResponse('open')
  return { size, mode, modifiedAt, changedAt, identity }
}

/** Reads a response that is true or false. Throws `ComputeError`. */
export function readBoolean(service: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw wrongResponse(service)
  return value
}

/** Reads a response of `usage`. Throws `ComputeError`. */
export function readUsage(value: unknown): number {
  if (!isCount(value)) throw wrongResponse('usage')
  return value
}

/** Reads a response of `consumption`. Throws `ComputeError`. */
export function readConsumption(value: unknown): ServerConsumption {
  const { at, cpuMs, memoryBytes, processes } = fieldsOf(value)
  const isMeasured = isCount(at) && isTime(cpuMs) && cpuMs >= 0 && isCount(memoryBytes) && isCount(processes)
  if (!isMeasured) throw wrongResponse('consumption')
  return { at, cpuMs, memoryBytes, processes }
}

/** Returns the error of a response that is none. */
export function wrongResponse(service: string): ComputeError {
  return new ComputeError(`sandboxd answered "${service}" in another form than expected.`)
}

/** Reports whether a path, relative to a directory, names something below it. */
export const isPathBelow = (path: string): boolean => path.split('/').every(isName)

function readList(service: string, bytes: Uint8Array): string[] {
  if (bytes.length === 0) return []
  const text = utf8Text(bytes)
  if (text === null) throw wrongResponse(service)
  return text.split('\0')
}

function readJsonList(service: string, bytes: Uint8Array): unknown[] {
  try {
    const list: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (Array.isArray(list)) return list
  } catch {
    // Told below.
  }
  throw wrongResponse(service)
}

/** A name of an entry; nothing that leads elsewhere. */
const isName = (name: string): boolean => name !== '' && name !== '.' && name !== '..'

/** Compares by code point. */
const compare = (a: string, b: string): number =>
  /[\ud800-\udfff]/.test(a + b) ? Buffer.compare(Buffer.from(a), Buffer.from(b)) : a < b ? -1 : a > b ? 1 : 0

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
