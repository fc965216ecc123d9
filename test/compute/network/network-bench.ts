import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ComputeDependencies, localDrivers } from '../../../src/compute/drivers.ts'
import type { ServerNetwork } from '../../../src/compute/local/network/server-network.ts'
import type { Sandbox } from '../../../src/compute/sandbox.ts'
import { createLogger } from '../../../src/runtime/logger.ts'
import { LIMITS, SELF, TEST_PATH } from '../bench.ts'

/** A driver whose servers have networks of their own, on a folder of its own. */
export class NetworkBench implements AsyncDisposable {
  readonly dataDir = mkdtempSync(join(tmpdir(), 'berth-network-'))
  /** As that of `Bench`. */
  readonly #lock = openSync(join(this.dataDir, 'lock'), 'w')
  readonly #networks = new Map<string, ServerNetwork>()
  readonly #sandboxes: Sandbox[] = []
  readonly driver

  constructor(
    options: Partial<Pick<ComputeDependencies, 'outbound' | 'machinePorts' | 'projectPorts' | 'path'>> = {},
  ) {
    const logger = createLogger('warn', (line) => process.stderr.write(line), Date.now)
    const provide = (id: string, network: ServerNetwork) => void this.#networks.set(id, network)
    const [bubblewrap] = localDrivers({
      dataDir: this.dataDir,
      self: SELF,
      path: TEST_PATH,
      logger,
      provide,
      ...options,
    })
    if (bubblewrap === undefined) throw new Error('no driver')
    this.driver = bubblewrap
  }

  /** A new server, started, with its network. */
  async start(id: string): Promise<NetworkedServer> {
    const sandbox = await this.driver.start(id, await this.driver.create(id), LIMITS)
    this.#sandboxes.push(sandbox)
    const network = this.#networks.get(id)
    if (network === undefined) throw new Error(`${id} has no network`)
    return { sandbox, network, ask: (port, host = '127.0.0.1') => ask(network, port, host) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const sandbox of this.#sandboxes) await sandbox.stop()
    closeSync(this.#lock)
    rmSync(this.dataDir, { recursive: true, force: true })
  }
}

/** A server that runs. */
export interface NetworkedServer {
  readonly sandbox: Sandbox
  readonly network: ServerNetwork
  /** What a port of the server says before it closes the connection. */
  readonly ask: (port: number, host?: '127.0.0.1' | '::1') => Promise<string>
}

async function ask(network: ServerNetwork, port: number, host: '127.0.0.1' | '::1'): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ''
  await network.connect(port, host, {
    data: null,
    socket: {
      data: (_, chunk) => {
        text += chunk.toString()
      },
      close: () => resolve(text),
    },
  })
  return promise
}

/** A command that answers each connection to a port with a word. */
export const SAYING = (port: number, word: string, host = '127.0.0.1'): string =>
  `bun -e 'Bun.listen({ hostname: "${host}", port: ${port}, socket: { open(s) { s.end("${word}") }, data() {} } })'`

/** Whether this machine gives a server a network of its own. */
export async function networkIsPossible(): Promise<boolean> {
  await using bench = new NetworkBench()
  const probe = await bench.driver.probe()
  if (probe.available && (await probe.enforced()).network === 'own, outbound filtered') return true
  console.error('SKIP the networks of servers: no network namespaces here')
  return false
}
