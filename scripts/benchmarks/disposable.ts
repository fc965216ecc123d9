import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { executable, readLine, temporaryFolder } from './instance.ts'
import { median, ms, print, samples, time, times } from './measure.ts'
import { compile } from './startup.ts'

const ROUNDS = 31

/** Instances that are started at the same time. */
const AT_ONCE = 16

/** Runs of which every second is killed, and how many go at a time. */
const RUNS = 100
const SIDE_BY_SIDE = 4

/** Milliseconds that the processes of killed instances may take to end. */
const SETTLE_MS = 5_000

/** The smallest program that does what `berth run` must: it listens, runs a command and ends with its code. */
const SMALLEST_RUN = `
const server = Bun.serve({ port: 0, fetch: () => new Response('ok') })
const child = Bun.spawn(process.argv.slice(2), {
  env: { ...process.env, BERTH_BASE_URL: 'http://127.0.0.1:' + server.port },
  stdio: ['inherit', 'inherit', 'inherit'],
})
process.exit(await child.exited)
`

/** Says where its instance is, and waits until its input ends. */
const WAITING = ['sh', '-c', 'echo "$BERTH_BASE_URL $BERTH_API_KEY $BERTH_DATA"; read -r line']

/** Instances for one command: what each costs, and what is left of them. */
export async function benchDisposable(): Promise<void> {
  using folder = temporaryFolder()
  const env = { ...process.env, TMPDIR: folder.path, XDG_STATE_HOME: join(folder.path, 'state') }
  const smallest = await compile(folder.path, 'smallest-run', SMALLEST_RUN)
  const wall = (command: string[]) => async () => {
    const code = await Bun.spawn(command, { env, stdio: ['ignore', 'ignore', 'inherit'] }).exited
    if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}`)
  }
  const alone = median(await samples(ROUNDS, 3, wall(['true'])))
  const base = median(await samples(ROUNDS, 3, wall([smallest, 'true'])))
  const run = median(await samples(ROUNDS, 3, wall([executable, 'run', '--', 'true'])))

  const instances: Waiting[] = []
  const together = await time(async () => {
    for (let n = 0; n < AT_ONCE; n++) instances.push(startWaiting(env))
    await Promise.all(instances.map(({ ready }) => ready))
  })
  await Promise.all(instances.map((instance) => instance.end()))
  const left = await runAndKill(folder.path, env)

  const none = (what: string, found: readonly string[]) => ({
    what: `${what} left by ${RUNS} runs, every second killed with -9`,
    measured: String(found.length),
    goal: '0',
    met: found.length === 0,
  })
  print('Disposable instances', [
    {
      what: 'berth run -- true, wall',
      measured: ms(run),
      baseline: `smallest compiled Bun.serve that runs it ${ms(base)}`,
      ratio: times(run / base),
      goal: '≤ 120 ms',
      met: run <= 120,
    },
    { what: 'true alone, wall', measured: ms(alone) },
    {
      what: `${AT_ONCE} instances at once, until the last command runs`,
      measured: ms(together),
      goal: '≤ 1500 ms',
      met: together <= 1_500,
    },
    none('processes', left.processes),
    none('ports', left.ports),
    none('folders and entries', left.folders),
    none('control groups', left.groups),
  ])
}

/** An instance whose command waits. */
interface Waiting {
  pid: number
  /** Where it is and its key, as soon as the command runs. */
  ready: Promise<{ url: string; key: string; folder: string }>
  /** Lets the command end; resolves when all has ended. */
  end(): Promise<unknown>
}

function startWaiting(env: Record<string, string | undefined>): Waiting {
  const child = Bun.spawn([executable, 'run', '--log-level', 'error', '--', ...WAITING], {
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const ready = readLine(child.stdout).then((line) => {
    const [url = '', key = '', folder = ''] = line.split(' ')
    return { url, key, folder }
  })
  return {
    pid: child.pid,
    ready,
    end() {
      child.stdin.end()
      return child.exited
    },
  }
}

interface Left {
  processes: string[]
  ports: string[]
  folders: string[]
  groups: string[]
}

/** Instances with a process in the background and a published site each; every second is killed. */
async function runAndKill(folder: string, env: Record<string, string | undefined>): Promise<Left> {
  const urls: string[] = []
  const names = new Set<string>()
  let next = 0
  const work = async (): Promise<void> => {
    while (next < RUNS) {
      const number = next++
      const instance = startWaiting(env)
      const { url, key, folder: data } = await instance.ready
      names.add(`berth-${new Bun.CryptoHasher('sha256').update(data).digest('hex').slice(0, 12)}`)
      urls.push(url, await occupy(url, key))
      if (number % 2 === 1) process.kill(instance.pid, 'SIGKILL')
      await instance.end()
    }
  }
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work))
  const deadline = performance.now() + SETTLE_MS
  while (processesOf(folder).length > 0 && performance.now() < deadline) await Bun.sleep(50)
  const processes = processesOf(folder)
  // The files of what was killed last go with the next.
  await startWaiting(env).end()
  const answering = await Promise.all(urls.map(async (url) => ((await answers(url)) ? [url] : [])))
  const files = (path: string) => readdirSync(path).filter((name) => /^berth-|\.json$/.test(name))
  const groups = new Bun.Glob('**/berth-*').scanSync({ cwd: '/sys/fs/cgroup', onlyFiles: false })
  return {
    processes,
    ports: answering.flat(),
    folders: [...files(folder), ...files(join(folder, 'state/berth/instances'))],
    groups: [...groups].filter((path) => names.has(basename(path))),
  }
}

/** Has a server run something in the background and publish a page; resolves to the page's URL. */
async function occupy(url: string, key: string): Promise<string> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const call = async (method: string, path: string, body: object) => {
    const answer = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return answer.json()
  }
  const { id } = (await call('POST', '/servers', {})) as { id: string }
  await call('POST', `/servers/${id}/exec`, { command: 'sleep 600 > /dev/null 2>&1 &' })
  await call('PUT', `/servers/${id}/files`, { path: 'index.html', content: 'here' })
  const published = (await call('POST', `/servers/${id}/deployments`, {})) as { url: string }
  return published.url
}

const answers = (url: string): Promise<boolean> =>
  fetch(url).then(
    () => true,
    () => false,
  )

/** Processes that have to do with a folder: what they were started with, where they work, what they have mounted. */
function processesOf(folder: string): string[] {
  const read = (path: string, reader: (path: string) => string): string => {
    try {
      return reader(path)
    } catch {
      return ''
    }
  }
  const text = (path: string) => read(path, (file) => readFileSync(file, 'latin1'))
  return readdirSync('/proc').filter(
    (pid) =>
      /^\d+$/.test(pid) &&
      Number(pid) !== process.pid &&
      [
        text(`/proc/${pid}/cmdline`),
        text(`/proc/${pid}/environ`),
        text(`/proc/${pid}/mountinfo`),
        read(`/proc/${pid}/cwd`, readlinkSync),
      ].some((part) => part.includes(folder)),
  )
}
