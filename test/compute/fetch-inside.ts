import type { DialHandlers, LoopbackHost, Sandbox } from '../../src/compute/sandbox.ts'

/** Gets a path from a program of a server, in the server's own network if it has one; resolves to the body. */
export async function fetchInside(
  sandbox: Pick<Sandbox, 'dial'>,
  port: number,
  path = '/',
  host: LoopbackHost = '127.0.0.1',
): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let received = ''
  const handlers: DialHandlers = {
    opened: (connection) => {
      connection.write(
        Buffer.from(`GET ${path} HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n\r\n`),
      )
    },
    data: (chunk) => {
      received += chunk.toString()
    },
    drain: () => {},
    closed: () => resolve(received.slice(received.indexOf('\r\n\r\n') + 4)),
  }
  await sandbox.dial(port, host, handlers)
  return promise
}
