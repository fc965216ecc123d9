import { expect } from 'bun:test'
import { join } from 'node:path'
import type { RefusedDestination } from '../../../src/compute/sandbox.ts'
import type { Step } from './world.ts'

const NEEDED = ['unshare', 'nsenter', 'ip', 'nft', 'curl', 'mount', 'ss']
const UNSHARE = ['unshare', '--user', '--map-root-user', '--net', '--mount', '--kill-child']

/** Whether a world can be made here: programs, user namespaces and nf_tables. */
export const hasWorlds =
  NEEDED.every((program) => Bun.which(program, { PATH: `${process.env.PATH}:/usr/sbin:/sbin` }) !== null) &&
  Bun.spawnSync([...UNSHARE, 'sh', '-c', 'mount --make-rprivate / && nft add table inet probe'], {
    env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
    stdout: 'ignore',
    stderr: 'ignore',
  }).exitCode === 0

if (!hasWorlds) console.error('SKIP what leaves a server: no network can be made here to try it')

const worlds: World[] = []

/** Ends all worlds that are open. */
export async function endWorlds(): Promise<void> {
  for (const world of worlds.splice(0)) await world.end()
}

/**
 * Opens a world; see world.ts. `endWorlds` ends it.
 *
 * @param openFiles how many descriptors berth's process may have; as many as this one if it is left out
 */
export async function openWorld(openFiles?: number): Promise<World> {
  const limited = openFiles === undefined ? [] : ['sh', '-c', `ulimit -n ${openFiles}; exec "$@"`, 'sh']
  const world = join(import.meta.dir, 'world.ts')
  const child = Bun.spawn([...UNSHARE, ...limited, process.execPath, world], {
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const opened = new World(child)
  worlds.push(opened)
  expect(await opened.line()).toBe('ready')
  return opened
}

/** A world that `world.ts` made. */
export class World {
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>
  readonly #reader
  #text = ''

  constructor(child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>) {
    this.#child = child
    this.#reader = child.stdout.getReader()
  }

  async line(): Promise<string> {
    const decoder = new TextDecoder()
    while (!this.#text.includes('\n')) {
      const { done, value } = await this.#reader.read()
      if (done) throw new Error(`The world ended: ${this.#text}`)
      this.#text += decoder.decode(value, { stream: true })
    }
    const at = this.#text.indexOf('\n')
    const line = this.#text.slice(0, at)
    this.#text = this.#text.slice(at + 1)
    return line
  }

  async step(step: Step): Promise<unknown> {
    this.#child.stdin.write(`${JSON.stringify(step)}\n`)
    this.#child.stdin.flush()
    const { value, error } = JSON.parse(await this.line())
    if (error !== undefined) throw new Error(error)
    return value
  }

  /** Runs a command on the server, and returns what it wrote. */
  async run(command: string): Promise<string> {
    return String(await this.step({ do: 'run', command }))
  }

  /** Gets a URL on the server. Returns the first word of the response, or curl's exit code as `failed N`. */
  async get(url: string, options = ''): Promise<string> {
    return this.run(
      `curl -sS -m 8 ${options} ${url} >/tmp/o.$$ 2>/dev/null; c=$?; [ $c = 0 ] && cut -d' ' -f1 /tmp/o.$$ || echo failed $c; rm -f /tmp/o.$$`,
    )
  }

  async refused(): Promise<Record<'told' | 'kept', RefusedDestination[]>> {
    return (await this.step({ do: 'refused' })) as Awaited<ReturnType<typeof this.refused>>
  }

  async end(): Promise<void> {
    this.#child.stdin.end()
    await this.#child.exited
  }
}
