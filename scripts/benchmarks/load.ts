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

/** Requests that are answered a second. @throws where one fails */
export async function requestRate(url: string): Promise<number> {
  const result = await autocannon({ url, connections: CONNECTIONS, duration: SECONDS })
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

/** Megabytes a second of one large answer. */
export async function downloadRate(url: string): Promise<number> {
  const started = performance.now()
  let bytes = 0
  for await (const chunk of (await fetch(url)).body ?? []) bytes += chunk.length
  return bytes / 1e6 / ((performance.now() - started) / 1_000)
}
