import { closeSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { codeOf } from '../../runtime/error-info.ts'
import type { Pace } from '../../runtime/pace.ts'

/**
 * A TCP socket of this machine. Addresses are as /proc/net/tcp writes them, with words in the machine's byte order.
 */
export interface TcpSocket {
  readonly address: string
  readonly port: number
  readonly remotePort: number
  readonly listens: boolean
  /** Whose it is: the number of a user. */
  readonly uid: number
  /** The kernel's number for it; `0` for one that no process has anymore. */
  readonly inode: string
}

/** The state of a listening socket in /proc/net/tcp. */
const LISTENING = '0A'

/** Bytes of lines of other sockets after which no listening one is expected, and most bytes of a table that are read. */
const MANY_OTHERS = 128 * 1024
/** @bound program */
const MAX_TABLE = 4 * 1024 * 1024

/** Read into by one call at a time. */
const BUFFER = Buffer.alloc(64 * 1024)

/** Their tables, below a process of the network; one is missing in a kernel without IPv6. */
const TABLES = ['net/tcp', 'net/tcp6']

/**
 * Returns the listening TCP sockets of a process's network; null if the system does not show them. The kernel lists them
 * before all others, of which a server can have hundreds of thousands: those are not read.
 */
export function readListeningSockets(pid: number): TcpSocket[] | null {
  const texts = TABLES.map((table) => readListening(`/proc/${pid}/${table}`))
  const sockets = socketsIn(texts, (line) => line.includes(` ${LISTENING} `))
  return sockets?.filter(({ listens }) => listens) ?? null
}

/** Reads the beginning of a table, until very many lines in a row are of other sockets. */
function readListening(path: string): string | null {
  let descriptor: number | null = null
  try {
    descriptor = openSync(path, 'r')
    let text = ''
    for (let others = 0; others < MANY_OTHERS && text.length < MAX_TABLE; ) {
      const length = readSync(descriptor, BUFFER)
      if (length === 0) break
      const piece = BUFFER.toString('latin1', 0, length)
      others = piece.includes(` ${LISTENING} `) ? 0 : others + length
      text += piece
    }
    return text
  } catch {
    return null
  } finally {
    if (descriptor !== null) closeSync(descriptor)
  }
}

/**
 * Returns the TCP sockets of berth's own network whose local port is one of these; null if the system does not show
 * them. There may be many others, which hold nothing up.
 */
export async function findTcpSockets(ports: readonly number[]): Promise<TcpSocket[] | null> {
  const texts = await Promise.all(
    TABLES.map((table) => readFile(`/proc/self/${table}`, 'latin1').catch(() => null)),
  )
  // Behind the number of the line and the address.
  const local = new RegExp(`^ *\\d+: [0-9A-F]+:(?:${ports.map(hexPort).join('|')}) `)
  return socketsIn(texts, (line) => local.test(line))
}

const hexPort = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0')

function socketsIn(
  texts: readonly (string | null)[],
  isMeant: (line: string) => boolean,
): TcpSocket[] | null {
  const there = texts.filter((text) => text !== null)
  return there.length === 0
    ? null
    : there.flatMap((text) => text.split('\n').filter(isMeant).flatMap(socketOf))
}

/** Parses one line; returns an empty list for the first line, which names the columns. */
function socketOf(line: string): TcpSocket[] {
  const fields = line.trim().split(/\s+/)
  const [, local = '', remote = '', state] = fields
  const [address = '', port = ''] = local.split(':')
  const inode = fields[9]
  if (inode === undefined || port === '') return []
  return [
    {
      address,
      port: Number.parseInt(port, 16),
      remotePort: Number.parseInt(remote.split(':')[1] ?? '', 16),
      listens: state === LISTENING,
      uid: Number(fields[7]),
      inode,
    },
  ]
}

/** Returns the kernel's numbers of the sockets that a process has; null if its descriptors may not be looked into. */
export const socketsOf = (pid: number): string[] | null =>
  descriptorsOf(pid)?.flatMap((fd) => socketAt(pid, fd) ?? []) ?? null

/** Does the same for a process that may have very many descriptors. */
export async function findSocketsOf(pid: number, pace: Pace): Promise<string[] | null> {
  const descriptors = descriptorsOf(pid)
  if (descriptors === null) return null
  const found: string[] = []
  for (const fd of descriptors) {
    if (pace.due) await pace.rest()
    const inode = socketAt(pid, fd)
    if (inode !== null) found.push(inode)
  }
  return found
}

function socketAt(pid: number, fd: string): string | null {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? null
  } catch {
    // Closed meanwhile.
    return null
  }
}

/** Reports whether a process has a socket; false if its descriptors are not readable. */
export async function hasSocket(pid: number, inode: string, pace: Pace): Promise<boolean> {
  const link = `socket:[${inode}]`
  for (const fd of descriptorsOf(pid) ?? []) {
    if (pace.due) await pace.rest()
    try {
      if (readlinkSync(`/proc/${pid}/fd/${fd}`) === link) return true
    } catch {
      // Closed meanwhile.
    }
  }
  return false
}

function descriptorsOf(pid: number): string[] | null {
  try {
    return readdirSync(`/proc/${pid}/fd`)
  } catch (error) {
    return codeOf(error) === 'EACCES' ? null : []
  }
}
