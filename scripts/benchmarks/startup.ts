import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { STARTUP_JIT_POLICY } from '../compile.ts'
import { executable, readLine, temporaryFolder } from './instance.ts'
import { median, ms, print, times } from './measure.ts'

const ROUNDS = 21

/** The smallest program that answers HTTP: what any berth must pay at least. */
const SMALLEST = `
const server = Bun.serve({ port: 0, fetch: () => new Response('ok') })
console.log(JSON.stringify({ base_url: 'http://127.0.0.1:' + server.port, api_key: 'none' }))
process.on('SIGTERM', () => process.exit(0))
`

/** The smallest program that answers by the framework, with one shape checked: what no berth can be under. */
const SMALLEST_ELYSIA = `
import { Elysia, t } from 'elysia'
const shape = t.Object({ servers: t.Array(t.Object({ id: t.String() })) })
const app = new Elysia().get('/servers', () => ({ servers: [] }), { response: { 200: shape } })
const server = Bun.serve({ port: 0, fetch: (request) => app.handle(request) })
console.log(JSON.stringify({ base_url: 'http://127.0.0.1:' + server.port, api_key: 'none' }))
process.on('SIGTERM', () => process.exit(0))
`

/**
 * The least that berth's ready line and its first response need: a locked directory with the database and a key in it,
 * both loopback addresses, a checked key, a list. What berth needs above that is its options, its services and the probe
 * of the isolation.
 */
const LEAST = `
import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { Elysia, t } from 'elysia'
import { apiKeys } from '../../src/resources/keys/table.ts'
import { servers } from '../../src/resources/servers/table.ts'
import { emptyDatabase } from '../../src/storage/migrate.ts' with { type: 'macro' }
const image = emptyDatabase()
const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'))
const lock = new Database(join(folder, 'lock'))
lock.run('BEGIN EXCLUSIVE')
writeFileSync(join(folder, 'berth.db'), Bun.zstdDecompressSync(Buffer.from(image, 'base64')))
const sqlite = new Database(join(folder, 'berth.db'), { strict: true })
sqlite.run('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF')
const queries = drizzle(sqlite)
const key = 'sk_live_' + crypto.getRandomValues(Buffer.alloc(24)).toString('base64url')
const hashOf = (text) => new Bun.CryptoHasher('sha256').update(text).digest()
queries.insert(apiKeys).values({ id: 'k', accountId: 'a', label: '', hash: hashOf(key), lastFour: '', createdAt: 1 }).run()
writeFileSync(join(folder, 'credentials.json'), JSON.stringify({ api_key: key }))
const byHash = queries.select().from(apiKeys).where(eq(apiKeys.hash, sql.placeholder('hash'))).prepare()
const ofAccount = queries.select().from(servers).where(eq(servers.accountId, sql.placeholder('id'))).prepare()
const shape = t.Object({ servers: t.Array(t.Object({ id: t.String() })) })
const app = new Elysia({ normalize: false })
  .derive(({ request, status }) => {
    const found = byHash.get({ hash: hashOf(request.headers.get('authorization').slice(7)) })
    return found ? { caller: found } : status(401, 'no')
  })
  .get('/servers', ({ caller }) => ({ servers: ofAccount.all({ id: caller.accountId }) }), { response: { 200: shape } })
const respond = (request) => app.handle(request)
const { port } = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: respond })
Bun.serve({ hostname: '::1', port, fetch: respond })
console.log(JSON.stringify({ base_url: 'http://127.0.0.1:' + port, api_key: key }))
process.on('SIGTERM', () => { rmSync(folder, { recursive: true }); process.exit(0) })
`

/** An earlier executable of berth to compare with, where one is named. */
const earlier = process.env.BERTH_BASELINE || null

/**
 * Process start → first authenticated answer. With BERTH_BASELINE=EXECUTABLE an earlier berth is measured in turn with
 * this one.
 */
export async function benchStartup(): Promise<void> {
  using folder = temporaryFolder()
  const smallest = await compile(folder.path, 'smallest', SMALLEST)
  const framework = await compile(folder.path, 'framework', SMALLEST_ELYSIA)
  const least = await compile(folder.path, 'least', LEAST, [`--compile-jit-policy=${STARTUP_JIT_POLICY}`])

  const serve = [executable, 'serve', '--json', '--port', '0', '--log-level', 'error']
  const commands = {
    smallest: [smallest],
    framework: [framework],
    least: [least],
    fresh: [...serve, '--ephemeral'],
    again: [...serve, '--data', join(folder.path, 'data')],
    ...(earlier ? { earlier: [earlier, ...serve.slice(1), '--ephemeral'] } : {}),
  }
  const taken = {
    smallest: [] as number[],
    framework: [] as number[],
    least: [] as number[],
    fresh: [] as number[],
    again: [] as number[],
    earlier: [] as number[],
  }
  for (let round = -2; round < ROUNDS; round++) {
    for (const [name, command] of Object.entries(commands) as [keyof typeof taken, string[]][]) {
      const took = await firstAnswer(command)
      if (round >= 0) taken[name].push(took)
    }
  }
  const base = median(taken.smallest)
  const row = (what: string, value: number) => ({
    what,
    measured: ms(value),
    baseline: `smallest compiled Bun.serve ${ms(base)}`,
    ratio: times(value / base),
    goal: '≤ 5.00 ×',
    met: value / base <= 5,
  })
  const size = (path: string) => `${(Bun.file(path).size / 1e6).toFixed(0)} MB`
  print('Process start → first authenticated answer', [
    row('berth, new data folder', median(taken.fresh)),
    row('berth, data folder of before', median(taken.again)),
    ...(earlier ? [againstEarlier(median(taken.fresh), median(taken.earlier))] : []),
    {
      what: 'smallest compiled Elysia program with one checked answer',
      measured: ms(median(taken.framework)),
      ratio: times(median(taken.framework) / base),
    },
    {
      what: 'the least that berth needs: a database with a key, one route, and nothing else',
      measured: ms(median(taken.least)),
      ratio: times(median(taken.least) / base),
    },
    { what: 'size of the executable', measured: size(executable), baseline: size(smallest) },
  ])
}

const againstEarlier = (now: number, before: number) => ({
  what: 'berth against an earlier one, new data folder',
  measured: ms(now),
  baseline: `earlier berth ${ms(before)}`,
  ratio: times(now / before),
  goal: '≤ 1.05 ×',
  met: now / before <= 1.05,
})

/**
 * Compiles a program as berth is compiled; resolves to its path. It lies in the project while it is built, whose modules it
 * uses.
 *
 * @param more further options of `bun build`
 */
export async function compile(
  folder: string,
  name: string,
  source: string,
  more: readonly string[] = [],
): Promise<string> {
  const entry = join(import.meta.dir, `.${name}.ts`)
  const outfile = join(folder, name)
  await Bun.write(entry, source)
  try {
    const flags = ['--compile', '--bytecode', '--format=esm', '--minify-whitespace', '--minify-syntax']
    const built = Bun.spawnSync([process.execPath, 'build', ...flags, ...more, entry, '--outfile', outfile])
    if (built.exitCode !== 0) throw new Error(built.stderr.toString())
    return outfile
  } finally {
    rmSync(entry, { force: true })
  }
}

/** Milliseconds from the start of a berth to its first response to a request with the key. */
export async function firstAnswer(command: string[]): Promise<number> {
  return (await measuredStart(command)).took
}

/** The same, with the milliseconds that all its processors worked for it from the start to the end of the process. */
export async function measuredStart(command: string[]): Promise<{ took: number; processor: number }> {
  const started = performance.now()
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
  const { base_url, api_key } = JSON.parse(await readLine(child.stdout))
  await (await fetch(`${base_url}/servers`, { headers: { authorization: `Bearer ${api_key}` } })).text()
  const took = performance.now() - started
  child.kill('SIGTERM')
  await child.exited
  return { took, processor: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1_000 }
}
