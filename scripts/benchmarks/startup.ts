import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from '../compile.ts'
import { earlier, executable, readLine, startInstance, temporaryDirectory } from './instance.ts'
import { inTurns, median, ms, print, ratioOf, times } from './measure.ts'

const ROUNDS = 21

/** The smallest program that answers HTTP: what any berth must pay at least. */
const SMALLEST = `
const server = Bun.serve({ port: 0, fetch: () => new Response('ok') })
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

/** Measures the time from the start of a process to its first response to a request with the key, and that of commands. */
export async function benchStartup(): Promise<void> {
  using directory = temporaryDirectory()
  const build = (name: string, source: string): Promise<string> =>
    compileSource(join(directory.path, name), source)
  const smallest = await build('smallest', SMALLEST)
  const least = await build('least', LEAST)
  const serve = ['serve', '--json', '--port', '0', '--log-level', 'error']
  const fresh = (program: string) => () => firstResponse([program, ...serve, '--ephemeral'])
  const taken = await inTurns(ROUNDS, 2, {
    smallest: () => firstResponse([smallest]),
    least: () => firstResponse([least]),
    fresh: fresh(executable),
    again: () => firstResponse([executable, ...serve, '--data', join(directory.path, 'data')]),
    earlier: earlier === null ? null : fresh(earlier),
  })
  const row = (what: string, values: readonly number[]) => ({
    what,
    measured: ms(median(values)),
    baseline: `smallest compiled Bun.serve ${ms(median(taken.smallest))}`,
    ratio: times(ratioOf(values, taken.smallest)),
  })
  const withGoal = (what: string, values: readonly number[]) => ({
    ...row(what, values),
    goal: '≤ 5.00 ×',
    met: ratioOf(values, taken.smallest) <= 5,
  })
  print('Process start → first authenticated response', [
    withGoal('berth, new data directory', taken.fresh),
    withGoal('berth, data directory of before', taken.again),
    ...(earlier ? [row('the earlier berth, new data directory', taken.earlier)] : []),
    row('the least that berth needs: a database with a key, one route, and nothing else', taken.least),
    { what: 'size of the executable', measured: size(executable), baseline: size(smallest) },
  ])
  await benchCommands(directory.path)
}

const size = (path: string): string => `${(Bun.file(path).size / 1e6).toFixed(0)} MB`

/** Commands that do next to nothing: what each costs before its own work. */
const COMMANDS = ['--version', 'servers list', 'run -- true']

async function benchCommands(directory: string): Promise<void> {
  await using berth = await startInstance()
  const env = {
    ...process.env,
    HOME: directory,
    TMPDIR: directory,
    BERTH_BASE_URL: berth.url,
    BERTH_API_KEY: berth.key,
  }
  const programs = { berth: executable, ...(earlier && { 'the earlier berth': earlier }) }
  const rows = []
  for (const command of COMMANDS) {
    const processor: Record<string, number[]> = {}
    const run = async (name: string, program: string): Promise<number> => {
      const began = performance.now()
      const child = Bun.spawn([program, ...command.split(' ')], {
        env,
        stdio: ['ignore', 'ignore', 'inherit'],
      })
      if ((await child.exited) !== 0) throw new Error(`${program} ${command} failed.`)
      processor[name] = [...(processor[name] ?? []), Number(child.resourceUsage()?.cpuTime.total) / 1_000]
      return performance.now() - began
    }
    const taken = await inTurns(
      ROUNDS,
      1,
      Object.fromEntries(Object.entries(programs).map(([name, path]) => [name, () => run(name, path)])),
    )
    for (const [name, values] of Object.entries(taken))
      rows.push({
        what: `${name}: ${command}`,
        measured: ms(median(values)),
        baseline: `of a processor ${ms(median(processor[name] ?? []))}`,
      })
  }
  print('Commands, from start to end', rows)
}

/** Compiles a program as berth is compiled. It is in the project meanwhile, since it uses its modules. */
async function compileSource(outfile: string, source: string): Promise<string> {
  const entry = join(import.meta.dir, '.program.ts')
  await Bun.write(entry, source)
  try {
    compile(entry, outfile)
    return outfile
  } finally {
    rmSync(entry, { force: true })
  }
}

/** Returns the milliseconds from the start of a program to its first response to a request with the key. */
async function firstResponse(command: string[]): Promise<number> {
  const started = performance.now()
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
  const { base_url, api_key } = JSON.parse(await readLine(child.stdout))
  await (await fetch(`${base_url}/servers`, { headers: { authorization: `Bearer ${api_key}` } })).text()
  const took = performance.now() - started
  child.kill('SIGTERM')
  await child.exited
  return took
}
