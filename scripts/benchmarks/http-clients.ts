import autocannon from 'autocannon'
import { readLine } from './instance.ts'
import { median, samples } from './measure.ts'

/** Starts a program under Bun that prints its port. Disposing of it ends it. */
export async function startProgram(source: string): Promise<{ url: string } & AsyncDisposable> {
  const child = Bun.spawn([process.execPath, '-e', source], { stdin: 'ignore', stdout: 'pipe' })
  return {
    url: `http://127.0.0.1:${await readLine(child.stdout)}/`,
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

/**
 * Returns the responses in a second, on 32 connections for 2 seconds.
 *
 * @param host the Host header, if it is another
 * @throws Error if a response is a refusal or a connection fails
 */
export async function requestRate(url: string, host = new URL(url).host): Promise<number> {
  const result = await autocannon({ url, connections: 32, duration: 2, headers: { host } })
  if (result.non2xx + result.errors > 0)
    throw new Error(`${url}: ${result.non2xx} refusals, ${result.errors} errors`)
  return result.requests.average
}

/** One kept-alive connection on which a request is sent over and over. */
export interface RawClient extends Disposable {
  /** Sends the request, and resolves to the bytes of its response. Rejects if that is not a success. */
  send(): Promise<number>
}

/**
 * Opens a connection for a client that does next to nothing: it writes the same bytes, and of the response it reads the head
 * and counts the rest. What `fetch` would add of its own, at the 99th percentile more than a millisecond, would be counted as
 * the service's. With a body it sends POST unless another method is named, else GET.
 */
export async function rawClient(
  url: string,
  path: string,
  key = '',
  body?: unknown,
  method = body === undefined ? 'GET' : 'POST',
): Promise<RawClient> {
  const { hostname, port, host } = new URL(url)
  const content = body === undefined ? '' : JSON.stringify(body)
  const head = [
    `${method} ${path} HTTP/1.1`,
    `host: ${host}`,
    `authorization: Bearer ${key}`,
    ...(body === undefined
      ? []
      : ['content-type: application/json', `content-length: ${Buffer.byteLength(content)}`]),
  ]
  const request = Buffer.from(`${head.join('\r\n')}\r\n\r\n${content}`)
  let [length, left] = [0, 0]
  let waiting = Promise.withResolvers<number>()
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(_, chunk) {
        if (length === 0) {
          const start = chunk.toString('latin1', 0, 4_096)
          const [found, digits] =
            /^HTTP\/1\.1 20[01] [\s\S]*?^content-length: *(\d+)[\s\S]*?\r\n\r\n/im.exec(start) ?? []
          if (found === undefined) return waiting.reject(new Error(start))
          length = found.length + Number(digits)
          left = length
        }
        left -= chunk.length
        if (left > 0) return
        const whole = length
        length = 0
        waiting.resolve(whole)
      },
      close: () => waiting.reject(new Error('the connection was closed')),
    },
  })
  socket.setNoDelay(true)
  return {
    send() {
      waiting = Promise.withResolvers()
      socket.write(request)
      return waiting.promise
    },
    [Symbol.dispose]() {
      waiting.promise.catch(() => {})
      socket.end()
    },
  }
}

/** Returns the milliseconds that a response takes at the median, one request after the other on one connection. */
export async function latency(url: string, count: number): Promise<number> {
  using client = await rawClient(url, new URL(url).pathname)
  return median(await samples(count, count / 10, () => client.send()))
}

/** Returns the megabytes a second of a large response, over half a second: one alone takes too short a time to measure. */
export async function download(url: string): Promise<number> {
  using client = await rawClient(url, new URL(url).pathname)
  const started = performance.now()
  let bytes = 0
  while (performance.now() - started < 500) bytes += await client.send()
  return bytes / 1e3 / (performance.now() - started)
}
