import type { TestBerth } from '../../support/berth.ts'

/** The paths of an execution, and its id. */
export interface Detached {
  readonly id: string
  readonly path: string
  readonly output: string
}

/** Starts a command that detaches. */
export async function detach(
  berth: TestBerth,
  server: string,
  command: string,
  more: object = {},
): Promise<Detached> {
  const { status, body } = await berth.call('POST', `/servers/${server}/exec`, {
    command,
    detach: true,
    ...more,
  })
  if (status !== 202) throw new Error(`no execution: ${status} ${JSON.stringify(body)}`)
  const path = `/servers/${server}/executions/${body.execution.id}`
  return { id: body.execution.id, path, output: `${path}/output` }
}

/** Waits until an execution has ended; resolves to it. */
export async function ended(berth: TestBerth, { id }: Detached) {
  const { body } = await berth.control('GET', `/wait?execution=${id}&timeout_ms=60000`)
  if (!body.matched) throw new Error(`${id} does not end: ${JSON.stringify(body)}`)
  return body.execution
}

interface Page {
  output: { id: string; stream: string; offset: number; data: string; encoding?: 'base64' }[]
  next: string
  dropped: { stdout: number; stderr: number }
  execution: { status: string }
}

/** Reads all kept output in pages; resolves to the bytes of each stream, and the pages. */
export async function readAll(berth: TestBerth, { output }: Detached, limit = 2_000) {
  const pages: Page[] = []
  const streams: Record<string, Buffer[]> = { stdout: [], stderr: [] }
  for (let after = ''; ; ) {
    const { body } = await berth.call('GET', `${output}?limit=${limit}${after && `&after=${after}`}`)
    if (body.output.length === 0) break
    pages.push(body)
    for (const { stream, data, encoding } of body.output) streams[stream]?.push(Buffer.from(data, encoding))
    after = body.next
  }
  const textOf = (stream: string) => Buffer.concat(streams[stream] ?? []).toString('latin1')
  return { stdout: textOf('stdout'), stderr: textOf('stderr'), pages }
}
