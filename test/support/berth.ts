import { afterAll } from 'bun:test'
import { closeSync, mkdtempSync, openSync, readSync, rmSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../src/config/config.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type ReadyInfo, type StartDependencies, startBerth } from '../../src/instance/start.ts'
import { createLogger } from '../../src/runtime/logger.ts'
import { selfCommand } from '../../src/runtime/self.ts'
import { VERSION } from '../../src/runtime/version.ts'
import { computeEnvironment, isLocalCompute } from './compute.ts'
import { checkControlAnswer } from './control-document.ts'
import { projectPorts } from './ports.ts'
import { processesOf, until } from './processes.ts'
import { makeHome } from './state-home.ts'

/** The executable under test, or undefined when the tests run from source. */
export const executable: string | undefined = process.env.BERTH_TEST_EXECUTABLE

/** An answer of the API, read whole. */
export interface Answer<Body = Record<string, unknown>> {
  status: number
  headers: Headers
  body: Body
}

/** The ready line of a berth that has its first key still. */
export type KeyedInfo = ReadyInfo & { api_key: string }

/** A berth under test. Disposing of it stops it and fails where it left a process behind. */
export interface TestBerth extends AsyncDisposable {
  readonly info: KeyedInfo
  readonly dataDir: string
  /** What it logged so far, as far as it has come here: the executable's lines are read as they come. */
  log(): string
  /** What it has logged of every request that was answered before; it has to log at `debug`. */
  wholeLog(): Promise<string>
  /** A request with the first key, `init` on top. */
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** A JSON request and its JSON answer. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer<any>>
  /** A JSON call of the control API, with the admin token. Fails where the answer is not as documented. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  control(method: string, path: string, body?: unknown): Promise<Answer<any>>
  /** Provisions a server and returns its id. */
  server(wishes?: object): Promise<string>
  /** Runs a command on a server. */
  exec(serverId: string, command: string, rest?: object): Promise<ExecAnswer>
  stop(): Promise<void>
}

/** A command's result. */
export interface ExecAnswer {
  stdout: string
  stderr: string
  exitCode: number
  timedOut: boolean
  truncated: boolean
}

/** How a test wants its berth. */
export interface TestOptions {
  /** Options of `serve`, by name. */
  flags?: Record<string, unknown>
  /** A folder of an earlier berth; it is then not removed. */
  dataDir?: string
  /** Only from source. */
  dependencies?: Partial<StartDependencies>
}

/** Starts a berth on a free port and a folder of its own: from source in this process, or as the executable. */
export async function testBerth(options: TestOptions = {}): Promise<TestBerth> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'berth-test-'))
  const { isolation, ...given } = options.flags ?? {}
  const flags = {
    port: '0',
    data: dataDir,
    'project-ports': projectPorts(),
    // Most tests are too short to use one, and what they find in the data directory is theirs.
    'spare-servers': '0',
    ...given,
    ...(isolation === undefined || !isLocalCompute ? {} : { isolation }),
  }
  const removeOwn = (): void => {
    if (!options.dataDir) rmSync(dataDir, { recursive: true, force: true })
  }
  const starting = executable
    ? runExecutable(executable, flags)
    : runSource(loadConfig({ flags, env: { ...computeEnvironment }, cwd: dataDir }), options.dependencies)
  const running = await starting.catch((error) => {
    removeOwn()
    throw error
  })
  const info = running.info as KeyedInfo
  const authorization = `Bearer ${info.api_key}`

  const berth: TestBerth = {
    info,
    dataDir,
    log: running.log,
    async wholeLog() {
      // Lines keep their order: with that of the last request all are there.
      const last = crypto.randomUUID()
      await berth.fetch(`/${last}`)
      await until(() => running.log().includes(last), 'the log tells of the last request')
      return running.log()
    },
    async fetch(path, init = {}) {
      const headers = { authorization, ...(init.headers as object) }
      const response = await fetch(`${info.base_url}${path}`, { ...init, headers })
      if (response.status === 500) showFailures(running.log(), response.headers.get('x-request-id') ?? '')
      return response
    },
    async call(method, path, body, headers = {}) {
      const init =
        body === undefined
          ? { method, headers }
          : {
              method,
              headers: { 'content-type': 'application/json', ...headers },
              body: JSON.stringify(body),
            }
      const response = await berth.fetch(path, init)
      return { status: response.status, headers: response.headers, body: await response.json() }
    },
    async control(method, path, body) {
      const headers = { authorization: `Bearer ${info.admin_token}` }
      const answer = await berth.call(method, `/_berth${path}`, body, headers)
      await checkControlAnswer(method, `/_berth${path}`, answer)
      return answer
    },
    async server(wishes = {}) {
      const { status, body } = await berth.call('POST', '/servers', wishes)
      if (status !== 201) throw new Error(`no server: ${status} ${JSON.stringify(body)}`)
      return body.id
    },
    async exec(serverId, command, rest = {}) {
      const { status, body } = await berth.call('POST', `/servers/${serverId}/exec`, { command, ...rest })
      if (status !== 200) throw new Error(`no result: ${status} ${JSON.stringify(body)}`)
      return body
    },
    stop: running.stop,
    async [Symbol.asyncDispose]() {
      await running.stop()
      const left = processesOf(dataDir)
      removeOwn()
      if (left.length > 0) throw new Error(`left behind: ${left.join('; ')}`)
    },
  }
  return berth
}

/** Starts a berth for the tests of a file, as `testBerth` does, and stops it after them. */
export async function berthForTests(options: TestOptions = {}): Promise<TestBerth> {
  makeHome()
  const berth = await testBerth(options)
  afterAll(() => berth[Symbol.asyncDispose]())
  return berth
}

/**
 * Shows in a test's report why requests failed: the response to a fault of berth's own has no word about it, its log has.
 *
 * @param request id of the request; by default those of all
 */
export function showFailures(log: string, request = ''): void {
  const failures = log.split('\n').filter((line) => line.includes('request failed') && line.includes(request))
  if (failures.length > 0) console.error(failures.join('\n'))
}

/** Something that runs, in this process or another. */
interface Running {
  info: ReadyInfo
  log: () => string
  stop: () => Promise<void>
}

async function runSource(config: Config, dependencies: Partial<StartDependencies> = {}): Promise<Running> {
  const lines: string[] = []
  const berth = await startBerth(config, {
    version: isLocalCompute ? '0.0.0-test' : VERSION,
    logger: createLogger('debug', (line) => lines.push(line), Date.now),
    path: process.env.PATH ?? '',
    environment: process.env,
    self: selfCommand(),
    sinceStartMs: () => performance.now(),
    ...dependencies,
  })
  await berth.recovered
  return { info: berth.info, log: () => lines.join(''), stop: berth.stop }
}

async function runExecutable(program: string, flags: Record<string, unknown>): Promise<Running> {
  const given = Object.entries(flags).flatMap(([name, value]) => {
    if (value === true) return [`--${name}`]
    // A flag that may be repeated.
    if (Array.isArray(value)) return value.flatMap((one) => [`--${name}`, String(one)])
    return [`--${name}`, typeof value === 'object' ? JSON.stringify(value) : String(value)]
  })
  const log = new LogFile()
  const child = Bun.spawn([program, 'serve', '--json', '--log-level', 'debug', ...given], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: log.descriptor,
    env: { ...process.env, ...computeEnvironment },
  })
  const line = await firstLine(child.stdout)
  if (line === null) {
    const exitCode = await child.exited
    const text = log.read()
    log.close()
    throw new Error(`the executable did not start (exit code ${exitCode}): ${text}`)
  }
  return {
    info: JSON.parse(line),
    log: () => log.read(),
    async stop() {
      child.kill('SIGTERM')
      await child.exited
      log.close()
    },
  }
}

/**
 * The standard error of an executable, in a file without a name. A pipe would have to be read by the event
 * loop, which was seen to read one no more after `expect(…).rejects`, for which the runtime runs it inside itself.
 */
class LogFile {
  readonly descriptor: number
  readonly #decoder = new TextDecoder()
  #text = ''
  #length = 0
  #isClosed = false

  constructor() {
    const path = join(tmpdir(), `berth-log-${crypto.randomUUID()}`)
    this.descriptor = openSync(path, 'ax+')
    unlinkSync(path)
  }

  /** Returns all that was written until now. */
  read(): string {
    const chunk = Buffer.alloc(64 * 1024)
    while (!this.#isClosed) {
      const read = readSync(this.descriptor, chunk, 0, chunk.length, this.#length)
      if (read === 0) break
      this.#length += read
      this.#text += this.#decoder.decode(chunk.subarray(0, read), { stream: true })
    }
    return this.#text
  }

  /** Keeps what was written until now, and closes the file. May be called again. */
  close(): void {
    this.read()
    if (!this.#isClosed) closeSync(this.descriptor)
    this.#isClosed = true
  }
}

/** The first line of a stream, or null where it ends before one is whole. */
export async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string | null> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return null
    text += decoder.decode(value, { stream: true })
    const end = text.indexOf('\n')
    if (end !== -1) {
      reader.releaseLock()
      return text.slice(0, end)
    }
  }
}
