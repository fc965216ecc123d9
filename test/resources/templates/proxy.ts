/** Passes HTTP and WebSockets on from another port, as whatever stands before an app does. */
export function startProxy(port: number) {
  type Link = { path: string; upstream?: WebSocket; waiting: (string | Buffer)[] }
  const server = Bun.serve<Link>({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request, server) {
      const { pathname, search } = new URL(request.url)
      const data = { path: pathname + search, waiting: [] }
      if (request.headers.has('upgrade') && server.upgrade(request, { data })) return
      const target = `http://127.0.0.1:${port}${pathname}${search}`
      const { method, headers, body } = request
      return fetch(target, { method, headers, body, redirect: 'manual', decompress: false }).catch(
        () => new Response('The app is away.', { status: 503 }),
      )
    },
    websocket: {
      open(socket) {
        const { data } = socket
        const upstream = new WebSocket(`ws://127.0.0.1:${port}${data.path}`)
        upstream.binaryType = 'arraybuffer'
        data.upstream = upstream
        upstream.onopen = () => {
          for (const message of data.waiting.splice(0)) upstream.send(message)
        }
        upstream.onmessage = (event) => void socket.send(event.data)
        upstream.onclose = () => socket.close()
      },
      message({ data }, message) {
        if (data.upstream?.readyState === WebSocket.OPEN) data.upstream.send(message)
        else data.waiting.push(message)
      },
      close: ({ data }) => data.upstream?.close(),
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}
