import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeAuthority } from '../support/authority.ts'
import type { Machine } from './support.ts'

/** A network namespace that has a loopback interface alone: programs in it reach only the servers that run in it too. */
export class OwnNetwork implements AsyncDisposable {
  /** The first words of a command that runs in it. */
  readonly within: readonly string[]
  /** The certificate of the authority that its servers for https are certified by, as PEM. */
  readonly authority: string
  readonly #machine: Machine
  readonly #name: string
  readonly #servers: Bun.Subprocess[] = []

  private constructor(machine: Machine, name: string) {
    this.#machine = machine
    this.#name = name
    this.within = ['ip', 'netns', 'exec', name]
    const { ca, issue } = makeAuthority()
    this.authority = ca
    const { cert, key } = issue('DNS:github.com')
    mkdirSync(join(machine.path, 'tls'))
    writeFileSync(join(machine.path, 'tls/cert'), cert)
    writeFileSync(join(machine.path, 'tls/key'), key)
  }

  /** Makes a network, which takes root. @param machine has the files of the servers in it */
  static async make(machine: Machine): Promise<OwnNetwork> {
    const name = `berth-${process.pid}-${machine.path.slice(-6)}`
    await machine.output(['ip', 'netns', 'add', name])
    await machine.output(['ip', '-n', name, 'link', 'set', 'lo', 'up'])
    return new OwnNetwork(machine, name)
  }

  /** Starts a server in it, which ends with it. */
  start(command: readonly string[], cwd = this.#machine.path): Bun.Subprocess {
    const server = Bun.spawn([...this.within, ...command], {
      cwd,
      env: this.#machine.env,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    this.#servers.push(server)
    return server
  }

  /** Starts servers of the release's files, and waits until they listen: GitHub, and at a port an index of Python packages. */
  async startFileServers(indexPort: number): Promise<void> {
    const listening = join(this.#machine.path, 'listening')
    await this.#machine.output(['mkfifo', listening])
    const program = join(import.meta.dir, 'file-servers.ts')
    this.start([process.execPath, program, join(this.#machine.path, 'tls'), String(indexPort), listening])
    await Bun.file(listening).text()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) {
      server.kill('SIGKILL')
      await server.exited
    }
    await this.#machine.run(['ip', 'netns', 'delete', this.#name])
  }
}
