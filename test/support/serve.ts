import { join } from 'node:path'
import { executable, firstLine, type KeyedInfo, showFailures } from './berth.ts'
import { computeEnvironment, forCompute } from './compute.ts'
import { projectPorts } from './ports.ts'

/** The fields of the ready line, in order. */
export const READY_KEYS = [
  'event',
  'version',
  'pid',
  'base_url',
  'mcp_url',
  'dashboard_url',
  'docs_url',
  'api_key',
  'admin_token',
  'data_dir',
  'compute',
  'isolation',
  'kept',
  'started_in_ms',
  'sign_in_url',
]

/** The command that is berth: the executable under test, or Bun with the source. */
export const command: string[] = executable
  ? [executable]
  : [process.execPath, join(import.meta.dir, '../../src/main.ts')]

/** The environment of this process without berth's own variables, and without the one that marks a worker of Bun's tests. */
export const cleanEnvironment = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value === undefined || /^(?:BERTH_|BUN_TEST_WORKER_ID$)/.test(name) ? [] : [[name, value]],
    ),
  )

/** A berth in a process of its own, to be signalled and killed. */
export interface ServeProcess {
  child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>
  /** The ready line, once it is there. Rejects, with what was said on stderr, where the process ends before. */
  ready: Promise<KeyedInfo>
  /** What comes on stdout after the ready line; resolves when the process has ended. */
  rest: Promise<string>
  /** All of stderr; resolves when the process has ended. */
  stderr: Promise<string>
}

/** Most tests are too short to use a spare server, and each costs a sandbox that nobody asks for. */
export const NO_SPARE_SERVERS = ['--spare-servers', '0']

/** Starts `berth serve --json` with further arguments. */
export function serve(args: string[], env: Record<string, string> = {}): ServeProcess {
  const child = Bun.spawn(
    [
      ...command,
      'serve',
      '--json',
      '--project-ports',
      projectPorts(),
      ...NO_SPARE_SERVERS,
      ...forCompute(args),
    ],
    {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
      env: { ...cleanEnvironment(), ...computeEnvironment, ...env },
    },
  )
  const stderr = new Response(child.stderr).text()
  stderr.then((log) => showFailures(log))
  const line = firstLine(child.stdout)
  const rest = line.then(() => readRest(child.stdout))
  rest.catch(() => {})
  const ready = line.then(async (line) => {
    if (line === null) throw new Error(await stderr)
    return JSON.parse(line) as KeyedInfo & { event: string }
  })
  ready.catch(() => {})
  return { child, ready, rest, stderr }
}

/** A JSON call to a berth. */
export async function call(info: KeyedInfo, method: string, path: string, body?: unknown) {
  const headers = { authorization: `Bearer ${info.api_key}`, 'content-type': 'application/json' }
  const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) }
  const response = await fetch(`${info.base_url}${path}`, init)
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  return { status: response.status, body: (await response.json()) as any }
}

/** What a stream still has, to its end; its beginning was read already. */
async function readRest(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (let next = await reader.read(); !next.done; next = await reader.read())
    text += decoder.decode(next.value)
  return text
}
