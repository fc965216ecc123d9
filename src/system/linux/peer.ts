import { ptr } from 'bun:ffi'
import { openLibc } from '../libc.ts'

const SOL_SOCKET = 1
const SO_PEERCRED = 17

/**
 * Returns a function that returns the process which has connected a Unix socket, or which listens on it if this one has
 * connected it (unix(7), SO_PEERCRED): 0 for one outside of this namespace of processes.
 */
export function loadPeerOf(): (socket: number) => number {
  const { getsockopt } = openLibc({
    getsockopt: { args: ['int', 'int', 'int', 'ptr', 'ptr'], returns: 'int' },
  })
  return (socket) => {
    const credentials = new Int32Array(3)
    const length = new Uint32Array([credentials.byteLength])
    const error = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, ptr(credentials), ptr(length))
    return error === 0 ? (credentials[0] ?? 0) : 0
  }
}
