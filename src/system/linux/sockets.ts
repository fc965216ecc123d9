import { closeSync, openSync, readSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { TcpSocket, TcpSockets } from '../system.ts'

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

/** The sockets that /proc/PID/net shows. */
export const linuxSockets: TcpSockets = { listening, withLocalPorts }

/** The kernel lists listening sockets before all others, of which a server can have hundreds of thousands: those are not read. */
function listening(pid: number): TcpSocket[] | null {
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

/** There may be many others, which hold nothing up. */
async function withLocalPorts(ports: readonly number[]): Promise<TcpSocket[] | null> {
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
