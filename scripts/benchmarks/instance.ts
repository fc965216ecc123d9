import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The executable that is measured. */
export const executable = join(import.meta.dir, '../../dist/berth')

/** An earlier executable of berth to compare with in turns, if one is named. */
export const earlier = process.env.BERTH_BASELINE || null

/** A running berth, as the ready line describes it. */
export interface Instance extends AsyncDisposable {
  pid: number
  url: string
  key: string
  adminToken: string
  isolation: string
  /** Sends a request with the key, and resolves to the JSON of the response. */
  // biome-ignore lint/suspicious/noExplicitAny: the bench reads whatever shape it expects
  call(method: string, path: string, body?: unknown): Promise<any>
  /** Sends a request to the control API, with the admin token. */
  // biome-ignore lint/suspicious/noExplicitAny: the bench reads whatever shape it expects
  control(method: string, path: string, body?: unknown): Promise<any>
}

/** Makes a temporary directory, which is removed when it is disposed of. */
export function temporaryDirectory(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'berth-bench-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/**
 * Starts berth on a free port.
 *
 * @param command the words of the command that is berth
 */
export async function startInstance(flags = ['--ephemeral'], command = [executable]): Promise<Instance> {
  // More servers than a plan has by itself.
  const plan = ['--plan', '{"servers":10000}']
  const options = ['--port', '0', '--log-level', 'error', ...plan, ...flags]
  const child = Bun.spawn([...command, 'serve', '--json', ...options], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const ready = JSON.parse(await readLine(child.stdout))
  const send = async (credential: string, method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
    const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) }
    const response = await fetch(`${ready.base_url}${path}`, init)
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response.json()
  }
  return {
    pid: ready.pid,
    url: ready.base_url,
    key: ready.api_key,
    adminToken: ready.admin_token,
    isolation: ready.isolation,
    call: (method, path, body) => send(ready.api_key, method, path, body),
    control: (method, path, body) => send(ready.admin_token, method, `/_berth${path}`, body),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}

/** Returns the first line that a program prints. */
export async function readLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  const reader = stream.getReader()
  for (;;) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`the program ended before it was ready: ${text}`)
    text += decoder.decode(value, { stream: true })
    const end = text.indexOf('\n')
    if (end !== -1) {
      reader.releaseLock()
      return text.slice(0, end)
    }
  }
}

/** Returns the bytes that a process has to itself, and its resident set, from the kernel's sums. */
export function memoryOf(pid: number): { own: number; resident: number } {
  const sums = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const bytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(sums)?.[1] ?? 0) * 1024
  return { own: bytes('Private_Clean') + bytes('Private_Dirty'), resident: bytes('Rss') }
}

/** Returns the microseconds of processor time that the threads of a process have taken. */
export function processorTime(pid: number): number {
  let nanoseconds = 0
  for (const path of new Bun.Glob('*/schedstat').scanSync({ cwd: `/proc/${pid}/task` })) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${path}`, 'utf8').split(' ')[0])
  }
  return nanoseconds / 1_000
}

/** Returns a process and all that descend from it, whichever of its threads started them. */
export function treeOf(pid: number): number[] {
  const tasks = Array.from(new Bun.Glob('*').scanSync({ cwd: `/proc/${pid}/task`, onlyFiles: false }))
  const children = tasks.flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
  )
  return [pid, ...children.flatMap(treeOf)]
}
