import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { executable, type Instance, startInstance, temporaryFolder } from './instance.ts'
import { median, ms, print, type Row, samples } from './measure.ts'

/** Files of the directory beside the one that changes. */
const FILES = 2_000
const ROUNDS = 10
const GOAL_MS = 500

/** Milliseconds between requests for the new version. */
const ASK_MS = 2

/** How the file that changes becomes an answer. */
interface Kind {
  file: string
  content(version: number): string
}

const APP: Kind = {
  file: 'index.ts',
  content: (version) =>
    `Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response('${version}') })`,
}
const SITE: Kind = { file: 'index.html', content: String }

/** One changed file among many: from the change, or the command's start, to the new response. */
export async function benchPush(): Promise<void> {
  using folder = temporaryFolder()
  await using berth = await startInstance(undefined, ['--project-ports', '6400-6449'])
  await berth.call('POST', '/servers')
  const env = { ...process.env, HOME: folder.path, BERTH_BASE_URL: berth.url, BERTH_API_KEY: berth.key }
  const rows: Row[] = []
  const row = (what: string, taken: number[]) =>
    rows.push({
      what: `${what}, median of ${ROUNDS}`,
      measured: ms(median(taken)),
      baseline: `slowest ${ms(Math.max(...taken))}`,
      goal: `≤ ${GOAL_MS} ms`,
      met: median(taken) <= GOAL_MS,
    })
  for (const [name, kind] of [
    ['app', APP],
    ['site', SITE],
  ] as const) {
    const directory = fill(join(folder.path, name), kind)
    await run(['projects', 'push', directory], env)
    const url = await urlOf(berth, name)
    row(
      `berth projects push, ${name}`,
      await byCommand(['projects', 'push', directory], env, directory, kind, url),
    )
    row(
      `berth projects push --watch, ${name}`,
      await byWatch(['projects', 'push', directory], env, directory, kind, url),
    )
  }
  const directory = fill(join(folder.path, 'deployed'), SITE)
  await run(['deploy', directory], env)
  const [{ publicUrl: url }] = (await berth.call('GET', '/servers')).servers
  row('berth deploy --watch, site', await byWatch(['deploy', directory], env, directory, SITE, url))
  print(`One changed file among ${FILES}, until the new version answers`, rows)
}

/** Writes the directory's files. Returns its path. */
function fill(directory: string, kind: Kind): string {
  for (let n = 0; n < FILES; n += 1) {
    const below = join(directory, `part-${n % 50}`)
    mkdirSync(below, { recursive: true })
    writeFileSync(join(below, `file-${n}.txt`), `${n} `.repeat(200))
  }
  writeFileSync(join(directory, kind.file), kind.content(0))
  return directory
}

type Environment = Record<string, string | undefined>

/** Runs a command to its end. */
async function run(args: readonly string[], env: Environment): Promise<void> {
  const child = Bun.spawn([executable, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [code, text] = await Promise.all([child.exited, child.stderr.text(), child.stdout.text()])
  if (code !== 0) throw new Error(`berth ${args.join(' ')}: ${text}`)
}

const urlOf = async (berth: Instance, slug: string): Promise<string> =>
  (await berth.call('GET', '/projects')).projects.find((project: { slug: string }) => project.slug === slug)
    .url

/** Waits until the site answers with a version. */
async function answered(url: string, version: number): Promise<void> {
  while ((await (await fetch(url)).text()) !== String(version)) await Bun.sleep(ASK_MS)
}

/** A command for each change. */
function byCommand(args: string[], env: Environment, directory: string, kind: Kind, url: string) {
  let version = 0
  return samples(ROUNDS, 2, async () => {
    version += 1
    writeFileSync(join(directory, kind.file), kind.content(version))
    const ended = run(args, env)
    await answered(url, version)
    await ended
  })
}

/** One command that watches, and changes while it does. */
async function byWatch(args: string[], env: Environment, directory: string, kind: Kind, url: string) {
  const child = Bun.spawn([executable, ...args, '--watch'], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const reader = child.stderr.getReader()
  for (let text = ''; !text.includes('Watching'); ) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`berth ${args.join(' ')} --watch: ${text}`)
    text += Buffer.from(value).toString()
  }
  reader.releaseLock()
  void child.stderr.pipeTo(new WritableStream()).catch(() => {})
  let version = 1_000
  try {
    return await samples(ROUNDS, 2, async () => {
      version += 1
      writeFileSync(join(directory, kind.file), kind.content(version))
      await answered(url, version)
      // The command has still to notice that.
      await Bun.sleep(100)
    }).then((taken) => taken.map((one) => one - 100))
  } finally {
    child.kill('SIGINT')
    await child.exited
  }
}
