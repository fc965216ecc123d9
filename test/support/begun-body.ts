import { connect, type Socket } from 'node:net'
import type { TestBerth } from './berth.ts'

/**
 * Sends the head of a request whose body does not come, or a first part of the body.
 *
 * @param framing the header that says how long the body is
 */
export function beginBody(
  { info }: TestBerth,
  key: string,
  target: string,
  framing: string,
  part = '',
): Socket {
  const { hostname, port } = new URL(info.base_url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  const method = target === '/mcp' ? 'POST' : 'PUT'
  const head = [`${method} ${target} HTTP/1.1`, `host: ${hostname}:${port}`, `authorization: Bearer ${key}`]
  socket.write(`${[...head, 'content-type: application/json', framing].join('\r\n')}\r\n\r\n${part}`)
  return socket
}
