import autocannon from 'autocannon'
import { readLine } from './instance.ts'
import { quantile } from './measure.ts'
import { rawClient } from './raw-client.ts'

/** Connections with which rates are measured. */
export const CONNECTIONS = 32

const SECONDS = 2

/** A program under Bun that prints its port. Disposing of it ends it. */
export async function program(source: string): Promise<{ port: number } & AsyncDisposable> {
  const child = Bun.spawn([process.execPath, '-e', source], { stdin: 'ignore', stdout: 'pipe' })
  const port = Number(await readLine(child.stdout))
  return {
    port,
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

/** Requests that are answered a second. @param host the Host header, if it is another @throws where one fails */
export async function requestRate(url: string, host = new URL(url).host): Promise<number> {
  const result = await autocannon({ url, connections: CONNECTIONS, duration: SECONDS, headers: { host } })
  if (result.non2xx + result.errors > 0)
    throw new Error(`${url}: ${result.non2xx} refusals, ${result.errors} errors`)
  return result.requests.average
}

/** Milliseconds that an answer takes at the median, one request after the other on one connection. */
export async function latency(url: string, count: number): Promise<number> {
  using client = await rawClient(url, '', new URL(url).pathname)
  const taken: number[] = []
  for (let n = -count / 10; n < count; n++) {
    const started = performance.now()
    await client.send()
    if (n >= 0) taken.push(performance.now() - started)
  }
  return quantile(taken, 0.5)
}

/** Megabytes a second of a large answer, over half a second: one answer alone takes too short a time to measure. */
export async function downloadRate(url: string): Promise<number> {
  const { megabytes, seconds } = await download(url, 0.5)
  return megabytes / seconds
}

/**
 * Downloads the same large answer over one connection until the time is over, at least once. The client looks at no
 * byte after the first head: streams of `fetch` would take more processor than what is measured.
 */
export async function download(
  url: string,
  atLeastSeconds: number,
): Promise<{ megabytes: number; seconds: number }> {
  const { hostname, port, host, pathname } = new URL(url)
  const request = `GET ${pathname} HTTP/1.1\r\nhost: ${host}\r\n\r\n`
  const done = Promise.withResolvers<void>()
  const started = performance.now()
  let [bytes, left, answer] = [0, -1, 0]
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open: (opened) => void opened.write(request),
      data(opened, chunk) {
        bytes += chunk.length
        if (answer === 0) {
          // The head comes with the first bytes of its body, or without any.
          const head = chunk.toString('latin1', 0, 4_096)
          const length = /^HTTP\/1\.1 200 [\s\S]*^content-length: *(\d+)[\s\S]*?\r\n\r\n/im.exec(head)
          if (length === null) return done.reject(new Error(head))
          answer = length[0].length + Number(length[1])
          left = answer
        }
        left -= chunk.length
        if (left > 0) return
        if (performance.now() - started >= atLeastSeconds * 1_000) return done.resolve()
        left = answer
        opened.write(request)
      },
      close: () => done.reject(new Error('the connection was closed')),
    },
  })
  await done.promise
  const seconds = (performance.now() - started) / 1_000
  socket.end()
  return { megabytes: bytes / 1e6, seconds }
}
