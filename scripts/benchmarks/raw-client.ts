/** One kept-alive connection on which a request is sent over and over. */
export interface RawClient extends Disposable {
  /** Sends the request; resolves when its answer has come whole. Rejects where that is no success. */
  send(): Promise<void>
}

/**
 * A client that does next to nothing: it writes the same bytes and waits for the announced length of the
 * answer. What `fetch` would add of its own, at the 99th percentile more than a millisecond, would be
 * counted as the service's. With a body it sends POST, else GET.
 */
export async function rawClient(url: string, key: string, path: string, body?: unknown): Promise<RawClient> {
  const { hostname, port, host } = new URL(url)
  const content = body === undefined ? '' : JSON.stringify(body)
  const head = [
    `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1`,
    `host: ${host}`,
    `authorization: Bearer ${key}`,
    ...(body === undefined
      ? []
      : ['content-type: application/json', `content-length: ${Buffer.byteLength(content)}`]),
  ]
  const request = Buffer.from(`${head.join('\r\n')}\r\n\r\n${content}`)
  let received = ''
  let waiting = Promise.withResolvers<void>()
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(_, chunk) {
        received += chunk.toString('latin1')
        const end = received.indexOf('\r\n\r\n')
        if (end === -1) return
        const length = Number(/^content-length: *(\d+)/im.exec(received)?.[1] ?? Number.NaN)
        if (!(received.length >= end + 4 + length)) return
        if (received.startsWith('HTTP/1.1 200 ')) waiting.resolve()
        else waiting.reject(new Error(received))
        received = ''
      },
      close: () => waiting.reject(new Error('the connection was closed')),
    },
  })
  socket.setNoDelay(true)
  return {
    send() {
      waiting = Promise.withResolvers<void>()
      socket.write(request)
      return waiting.promise
    },
    [Symbol.dispose]() {
      waiting.promise.catch(() => {})
      socket.end()
    },
  }
}
