import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** A TCP socket of this machine. Addresses are as /proc/net/tcp writes them, with words in the machine's byte order. */
export interface TcpSocket {
  readonly address: string
  readonly port: number
  readonly remotePort: number
  readonly listens: boolean
  /** Whose it is: the number of a user. */
  readonly uid: number
  /** The kernel's number for it; `0` for one that no process has any more. */
  readonly inode: string
}

/** The state of a listening socket in /proc/net/tcp. */
const LISTENING = '0A'

/** All TCP sockets of berth's own network; null where the system does not show them. */
export function readTcpSockets(): TcpSocket[] | null {
  const tables = [readTable('tcp'), readTable('tcp6')]
  return tables.every((table) => table === null) ? null : tables.flatMap((table) => table ?? [])
}

/** The sockets of a table; null where there is no such table, as in a kernel without IPv6. */
function readTable(table: 'tcp' | 'tcp6'): TcpSocket[] | null {
  let text: string
  try {
    text = readFileSync(`/proc/net/${table}`, 'latin1')
  } catch {
    return null
  }
  return text.split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/)
    const [, local = '', remote = '', state] = fields
    const [address = '', port = ''] = local.split(':')
    const inode = fields[9]
    // The first line names the columns.
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
  })
}

/** The kernel's numbers of the sockets that a process has; null where its descriptors may not be looked into. */
export function socketsOf(pid: number): string[] | null {
  return (
    descriptorsOf(pid)?.flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []
      } catch {
        // Closed meanwhile.
        return []
      }
    }) ?? null
  )
}

function descriptorsOf(pid: number): string[] | null {
  try {
    return readdirSync(`/proc/${pid}/fd`)
  } catch (error) {
    return (error as { code?: string }).code === 'EACCES' ? null : []
  }
}
