import { join } from 'node:path'
import { executable, readLine, temporaryFolder } from './instance.ts'
import { median, ms, print, times } from './measure.ts'

const ROUNDS = 21

/** The smallest program that answers HTTP: what any berth must pay at least. */
const SMALLEST = `
const server = Bun.serve({ port: 0, fetch: () => new Response('ok') })
console.log(JSON.stringify({ base_url: 'http://127.0.0.1:' + server.port, api_key: 'none' }))
process.on('SIGTERM', () => process.exit(0))
`

/** Process start → first authenticated answer. */
export async function benchStartup(): Promise<void> {
  using folder = temporaryFolder()
  const source = join(folder.path, 'smallest.ts')
  const smallest = join(folder.path, 'smallest')
  await Bun.write(source, SMALLEST)
  const flags = ['--compile', '--bytecode', '--format=esm', '--minify-whitespace', '--minify-syntax']
  const built = Bun.spawnSync([process.execPath, 'build', ...flags, source, '--outfile', smallest])
  if (built.exitCode !== 0) throw new Error(built.stderr.toString())

  const serve = [executable, 'serve', '--json', '--port', '0', '--log-level', 'error']
  const commands = {
    smallest: [smallest],
    fresh: [...serve, '--ephemeral'],
    again: [...serve, '--data', join(folder.path, 'data')],
  }
  const taken = { smallest: [] as number[], fresh: [] as number[], again: [] as number[] }
  for (let round = -2; round < ROUNDS; round++) {
    for (const name of ['smallest', 'fresh', 'again'] as const) {
      const took = await firstAnswer(commands[name])
      if (round >= 0) taken[name].push(took)
    }
  }
  const base = median(taken.smallest)
  const row = (what: string, value: number) => ({
    what,
    measured: ms(value),
    baseline: `smallest compiled Bun.serve ${ms(base)}`,
    ratio: times(value / base),
    goal: '≤ 2.50 ×',
    met: value / base <= 2.5,
  })
  const size = (path: string) => `${(Bun.file(path).size / 1e6).toFixed(0)} MB`
  print('Process start → first authenticated answer', [
    row('berth, new data folder', median(taken.fresh)),
    row('berth, data folder of before', median(taken.again)),
    { what: 'size of the executable', measured: size(executable), baseline: size(smallest) },
  ])
}

async function firstAnswer(command: string[]): Promise<number> {
  const started = performance.now()
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
  const { base_url, api_key } = JSON.parse(await readLine(child.stdout))
  await (await fetch(`${base_url}/servers`, { headers: { authorization: `Bearer ${api_key}` } })).text()
  const took = performance.now() - started
  child.kill('SIGTERM')
  await child.exited
  return took
}
