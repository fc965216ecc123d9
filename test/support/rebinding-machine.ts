/**
 * A machine without a way out of it, on which a berth runs: public addresses, private ones and a name server whose answers
 * change from one question to the next. Takes a JSON line for each step on standard input and answers each with one, the
 * first one with berth's ready line.
 *
 * It is started in namespaces of its own, with the command of the berth as its arguments.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RECORD, readQuestion } from '../../src/compute/local/network/outbound/dns-message.ts'
import { makeAuthority } from './authority.ts'

/** A step: a call of the API. */
export interface Step {
  /** The credential. */
  readonly token: string
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

/** What follows a step. */
export interface Outcome {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  readonly body: any
  /** Where connections arrived since the step before, as `ADDRESS:PORT`. */
  readonly connections: readonly string[]
}

const NAME_SERVER = '127.0.0.53'
/** The public address of another machine, which this one plays. */
const PUBLIC = '93.184.216.34'

/** The public address of this machine itself. */
const OWN = '93.184.216.35'

const INNER = [OWN, '127.0.0.1', '10.0.0.5', '169.254.169.254', '::1']

const asked: Record<string, number> = {}
const connections: string[] = []

/**
 * Returns the addresses of a name. `after-N-10-0-0-5…` has the public one for the first N questions and 10.0.0.5 from then
 * on, `mixed…` has both at once, `own…` is this machine, and all others are public.
 */
function addressesOf(name: string, times: number): string[] {
  const [, first, address = ''] = /^after-(\d+)-(\d+-\d+-\d+-\d+)/.exec(name) ?? []
  if (first !== undefined) return [times > Number(first) ? address.replaceAll('-', '.') : PUBLIC]
  if (name.startsWith('own')) return [OWN]
  return name.startsWith('mixed') ? [PUBLIC, '10.0.0.5'] : [PUBLIC]
}

/** Returns a name as DNS carries it. */
const encoded = (name: string): Buffer =>
  Buffer.concat([
    ...name.split('.').map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`)),
    Buffer.of(0),
  ])

/** Returns a record of the name that was asked for, or of the one at `at`, that nobody may keep. */
function record(type: number, data: Uint8Array, name: Uint8Array = Buffer.of(0xc0, 12)): Buffer {
  return Buffer.concat([name, Buffer.of(0, type, 0, 1, 0, 0, 0, 0, 0, data.length), data])
}

/** Answers questions about addresses. A name that begins with `alias-` is one of the rest of it (CNAME). */
function answer(query: Uint8Array): Buffer | null {
  const question = readQuestion(query)
  if (question === null) return null
  const alias = question.name.startsWith('alias-')
  const name = alias ? question.name.slice('alias-'.length) : question.name
  const records: Buffer[] = []
  if (question.type === RECORD.A) {
    asked[name] = (asked[name] ?? 0) + 1
    if (alias) records.push(record(5, encoded(name)))
    for (const address of addressesOf(name, asked[name])) {
      const data = Buffer.from(address.split('.').map(Number))
      records.push(record(RECORD.A, data, alias ? encoded(name) : undefined))
    }
  }
  const head = Buffer.from(query.subarray(0, question.end))
  head.writeUInt16BE(0x8180, 2)
  head.writeUInt16BE(records.length, 6)
  head.fill(0, 8, 12)
  return Buffer.concat([head, ...records])
}

function must(...argv: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(argv, { stdout: 'ignore', stderr: 'pipe' })
  if (exitCode !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`)
}

/** Gives this process's own namespaces their addresses, and the files by which names are looked up. */
function furnish(folder: string): void {
  must('mount', '--make-rprivate', '/')
  for (const [file, text] of [
    ['resolv.conf', `nameserver ${NAME_SERVER}\noptions timeout:1 attempts:1\n`],
    ['hosts', '127.0.0.1 localhost\n'],
  ] as const) {
    writeFileSync(join(folder, file), text)
    must('mount', '--bind', join(folder, file), `/etc/${file}`)
  }
  must('ip', 'link', 'set', 'lo', 'up')
  for (const address of [OWN, '10.0.0.5', '169.254.169.254'])
    must('ip', 'addr', 'add', `${address}/32`, 'dev', 'lo')
  // What is sent there arrives here, though no interface has the address.
  must('ip', 'route', 'add', 'local', `${PUBLIC}/32`, 'dev', 'lo')
}

/** Serves ports of every address, and notes who is connected to. Only the public address speaks, https. */
function listen(tls: { cert: string; key: string }): void {
  for (const hostname of [PUBLIC, ...INNER]) {
    for (const port of [443, 22, 6379]) {
      if (hostname === PUBLIC && port === 443) continue
      Bun.listen({
        hostname,
        port,
        socket: {
          open(socket) {
            connections.push(`${hostname}:${port}`)
            socket.end()
          },
          data() {},
        },
      })
    }
  }
  Bun.serve({
    hostname: PUBLIC,
    port: 443,
    tls,
    fetch(request) {
      connections.push(`${PUBLIC}:443`)
      const to = new URL(request.url).searchParams.get('to')
      return to === null ? new Response('', { status: 404 }) : Response.redirect(to)
    },
  })
}

/** Starts a berth. Returns the process and its ready line. */
async function startBerth(ca: string) {
  // A proxy would look names up in berth's place.
  const own = Object.entries(process.env).filter(([name]) => !/_proxy$/i.test(name))
  const child = Bun.spawn(process.argv.slice(2), {
    env: { ...Object.fromEntries(own), SSL_CERT_FILE: ca, GIT_SSL_CAINFO: ca, NODE_EXTRA_CA_CERTS: ca },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of child.stdout) {
    text += decoder.decode(chunk, { stream: true })
    if (text.endsWith('\n')) break
  }
  return { child, info: JSON.parse(text) as { base_url: string } }
}

/** Takes a step. */
async function take({ token, method, path, body }: Step, base: string): Promise<Outcome> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) }
  const response = await fetch(`${base}${path}`, init)
  return { status: response.status, body: await response.json(), connections: connections.splice(0) }
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-machine-'))
  try {
    furnish(folder)
    await Bun.udpSocket({
      hostname: NAME_SERVER,
      port: 53,
      socket: {
        data(socket, query, port, address) {
          const response = answer(query)
          if (response !== null) socket.send(response, port, address)
        },
      },
    })
    const authority = makeAuthority()
    listen(authority.issue('DNS:*.names.example'))
    const ca = join(folder, 'ca.pem')
    writeFileSync(ca, authority.ca)
    const { child, info } = await startBerth(ca)
    console.log(JSON.stringify(info))
    for await (const line of console) {
      if (line !== '') console.log(JSON.stringify(await take(JSON.parse(line), info.base_url)))
    }
    child.kill('SIGTERM')
    await child.exited
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  await main()
  process.exit(0)
}
