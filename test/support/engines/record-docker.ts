/**
 * Records what a Docker engine responds to the driver, for `SimulatedEngine`: starts an engine of its own, lets the driver
 * make, use and remove one server through a relay, and writes `docker-responses.json`. What is of this machine or of one
 * run is replaced by a word in braces, or left out. Run it with `bun` as root, behind `scripts/build`.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { DockerClient } from '../../../src/compute/docker/client.ts'
import { EngineNotes } from '../../../src/compute/engine/owner.ts'
import { VERSION } from '../../../src/runtime/version.ts'
import { EngineRig, missingForEngine } from './engine-rig.ts'
import { RESPONSES_FILE, type Recorded } from './recorded.ts'

/** Headers that are kept: those that say what the API is. */
const KEPT_HEADERS = ['api-version', 'content-type', 'docker-experimental', 'ostype']

/** Fields that describe the engine's machine, not its API. */
const MACHINE =
  /^(?:KernelVersion|OperatingSystem|OSVersion|MemTotal|SystemTime|RegistryConfig|HttpProxy|HttpsProxy|NoProxy|BuildTime|GitCommit|Container|ContainerConfig|Metadata|IndexServerAddress|NFd|NGoroutines|ContainerdCommit|RuncCommit|InitCommit|Warnings|GraphDriver|DriverStatus|CreatedAt|Created|Parent|RootFS|Runtimes|Plugins|Swarm|NetworkSettings|Details)$/

/** A connection to the engine, and what has passed over it. */
interface Passed {
  sent: string
  received: string
}

/** Relays a socket to another, and keeps what passes. */
function relay(path: string, target: string): { passed: Passed[] } & Disposable {
  const passed: Passed[] = []
  type Side = { other: Bun.Socket<Side> | null; early: Buffer[]; note(chunk: Buffer): void }
  const pass = (socket: Bun.Socket<Side>, chunk: Buffer): void => {
    socket.data.note(chunk)
    // Requests and responses of one server fit into the socket.
    if (socket.data.other === null) socket.data.early.push(Buffer.from(chunk))
    else socket.data.other.write(chunk)
  }
  const listener = Bun.listen<Side>({
    unix: path,
    socket: {
      open(socket) {
        const entry: Passed = { sent: '', received: '' }
        passed.push(entry)
        socket.data = {
          other: null,
          early: [],
          note: (chunk) => {
            entry.sent += chunk.toString('latin1')
          },
        }
        void Bun.connect<Side>({
          unix: target,
          data: {
            other: socket,
            early: [],
            note: (chunk) => {
              entry.received += chunk.toString('latin1')
            },
          },
          socket: {
            open(engine) {
              socket.data.other = engine
              for (const chunk of socket.data.early.splice(0)) engine.write(chunk)
            },
            data: pass,
            close: () => void socket.end(),
          },
        })
      },
      data: pass,
      close: (socket) => void socket.data.other?.end(),
    },
  })
  return { passed, [Symbol.dispose]: () => listener.stop(true) }
}

/** Takes the pieces of a response apart (RFC 9112, 7.1). */
function joinChunks(text: string): string {
  let [joined, rest] = ['', text]
  for (;;) {
    const end = rest.indexOf('\r\n')
    const length = Number.parseInt(rest.slice(0, end), 16)
    if (end === -1 || !(length > 0)) return joined
    joined += rest.slice(end + 2, end + 2 + length)
    rest = rest.slice(end + 4 + length)
  }
}

/** Leaves out what describes the machine. */
function withoutMachine(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMachine)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([name]) => !MACHINE.test(name))
  return Object.fromEntries(kept.map(([name, field]) => [name, withoutMachine(field)]))
}

/** Returns a response as it is kept; null for one whose request was cut off. */
function recorded({ sent, received }: Passed, replace: (text: string) => string): [string, Recorded] | null {
  const [requestLine = ''] = sent.split('\r\n')
  const [method = '', target = ''] = requestLine.split(' ')
  const [head = '', ...parts] = received.split('\r\n\r\n')
  const [statusLine = '', ...lines] = head.split('\r\n')
  const status = Number(statusLine.split(' ')[1])
  if (!(status > 0)) return null
  const headers = Object.fromEntries(
    lines.flatMap((line) => {
      const [name = '', ...value] = line.split(': ')
      return KEPT_HEADERS.includes(name.toLowerCase()) ? [[name, value.join(': ')]] : []
    }),
  )
  const isChunked = /transfer-encoding: chunked/i.test(head)
  const rest = parts.join('\r\n\r\n')
  const text = status === 101 ? '' : replace(isChunked ? joinChunks(rest) : rest)
  const path = replace((target.split('?')[0] ?? '').replace(/^\/v[\d.]+/, ''))
  const body = text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => (/^[[{]/.test(line) ? withoutMachine(JSON.parse(line)) : line))
  return [`${method} ${path} ${status}`, { headers, body }]
}

const missing = missingForEngine('docker')
if (missing !== null) throw new Error(missing)
const directory = mkdtempSync(join(tmpdir(), 'berth-record-'))
const rig = await EngineRig.start('docker')
try {
  await rig.prepare()
  const path = join(directory, 'relay.sock')
  using relayed = relay(path, rig.socket)
  const driver = rig.driver(directory, {
    client: new DockerClient({ kind: 'unix', path }, 'The engine', null),
  })
  const limits = { cpus: 1, memoryBytes: 2 ** 28, processes: 100, storageBytes: 2 ** 30 }
  const handle = await driver.create('srv_recorded')
  const sandbox = await driver.start('srv_recorded', handle, limits)
  await driver.workspace(handle).usage()
  const client = new DockerClient({ kind: 'unix', path }, 'The engine', null)
  const { owner } = new EngineNotes(directory)
  const filters = JSON.stringify({ label: [`berth.owner=${owner}`] })
  const listed = (await client.json('GET', '/containers/json', { query: { all: '1', filters } })) as {
    Id: string
    Names: string[]
  }[]
  await client.json('GET', '/volumes', { query: { filters } })
  await sandbox.stop()
  await driver.destroy(handle)
  await driver.checkFiles(handle).catch(() => {})
  const storage = String(handle.storage)
  const words = new Map([
    [String(listed[0]?.Id), '{id}'],
    [String(listed[0]?.Names[0]).slice(1), '{name}'],
    [storage, '{storage}'],
    [owner, '{owner}'],
    ['srv_recorded', '{server}'],
    [String(handle.engine), '{engine}'],
    [join(rig.directory, 'data'), '/var/lib/docker'],
    [rig.directory, '/run'],
    [VERSION, '{version}'],
    [hostname(), '{machine}'],
  ])
  const replace = (text: string): string =>
    [...words]
      .reduce((now, [from, to]) => now.replaceAll(from, to), text)
      .replaceAll(/\b[0-9a-f]{64}\b/g, '{digest}')
      .replaceAll(/\/berth-test-\d+-\w+/g, '/group')
  const responses = Object.fromEntries(
    relayed.passed.flatMap((entry) => {
      const one = recorded(entry, replace)
      return one === null ? [] : [one]
    }),
  )
  writeFileSync(RESPONSES_FILE, `${JSON.stringify(responses, null, 2)}\n`)
  console.log(Object.keys(responses).join('\n'))
} finally {
  await rig[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true, force: true })
}
// The driver follows the events of its engine for as long as it is there.
process.exit()
