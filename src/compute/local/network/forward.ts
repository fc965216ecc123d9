/** Where berth itself accepts connections: a port of this machine's loopback, or a unix socket (unix(7)). */
export type ForwardTarget = { readonly port: number } | { readonly unix: string }

/**
 * Largest number of connections that a server has open to one target; each takes three of berth's descriptors.
 * @bound program
 */
export const MAX_FORWARDED = 256

/** One end of a forwarded connection. */
interface End {
  /** The other end; null before it is open, and for a connection that is over. */
  peer: Bun.Socket<End> | null
  /** Bytes for this end that it does not take yet. */
  waiting: Uint8Array | null
  /** Whether this end closes once it has taken what waits. */
  ending: boolean
  /** Called when this end is closed. */
  onClosed(): void
}

/**
 * Returns handlers for a listener that pass each connection on to another one of berth's. Resets those beyond
 * `MAX_FORWARDED`.
 */
export function forwardTo(target: ForwardTarget): Bun.SocketHandler<End> {
  let open = 0
  return {
    open(socket) {
      open += 1
      const onClosed = (): void => {
        open -= 1
      }
      socket.data = { peer: null, waiting: null, ending: false, onClosed }
      if (open > MAX_FORWARDED) {
        socket.terminate()
        return
      }
      // Nothing is read before there is somewhere to write it.
      socket.pause()
      const data: End = { peer: socket, waiting: null, ending: false, onClosed() {} }
      const options = 'unix' in target ? target : { hostname: '127.0.0.1', port: target.port }
      Bun.connect<End>({
        ...(options as { hostname: string; port: number }),
        data,
        socket: {
          ...EVENTS,
          open(other) {
            if (socket.data.ending) other.end()
            socket.data.peer = other
            socket.resume()
          },
        },
      }).catch(() => socket.terminate())
    },
    ...EVENTS,
  }
}

const EVENTS = {
  data({ data: { peer } }, chunk) {
    if (peer === null) return
    const written = Math.max(peer.write(chunk), 0)
    if (written === chunk.length) return
    peer.data.waiting = chunk.subarray(written)
    peer.data.peer?.pause()
  },
  drain(socket) {
    const { data } = socket
    if (data.waiting !== null) {
      const written = Math.max(socket.write(data.waiting), 0)
      data.waiting = written === data.waiting.length ? null : data.waiting.subarray(written)
      if (data.waiting !== null) return
    }
    if (data.ending) socket.end()
    else data.peer?.resume()
  },
  close({ data }) {
    data.onClosed()
    const { peer } = data
    data.ending = true
    if (peer === null) return
    peer.data.peer = null
    peer.data.ending = true
    if (peer.data.waiting === null) peer.end()
  },
  error: () => {},
} satisfies Bun.SocketHandler<End>
