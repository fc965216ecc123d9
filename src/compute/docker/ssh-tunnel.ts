import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { within } from '../../runtime/wait.ts'
import type { SshAddress } from './address.ts'

/** Milliseconds for a connection, in which a person cannot be asked anything. */
const CONNECT_MS = 20_000
const POLL_MS = 20

/** Bytes of what ssh says that are kept. @bound system */
const MAX_ERRORS = 4096

/**
 * Forwards a socket of this machine to an engine's on another, by OpenSSH with the person's own configuration, keys and agent.
 * ssh ends with this process, however that ends: the command that it runs there reads its input to the end.
 */
export class SshTunnel {
  readonly #address: SshAddress
  readonly #socket: string
  #process: Bun.Subprocess<'pipe', 'ignore', 'pipe'> | null = null
  #opening: Promise<void> | null = null

  /** @param socket absolute path of the socket to make, in a directory of this user alone */
  constructor(address: SshAddress, socket: string) {
    this.#address = address
    this.#socket = socket
  }

  /** Resolves when the socket leads to the engine's machine. Throws an error that says why it does not. */
  open(): Promise<void> {
    if (this.#process !== null && !hasEnded(this.#process) && this.#opening === null) return Promise.resolve()
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = null
    })
    return this.#opening
  }

  async #connect(): Promise<void> {
    const { user, host, port, socket } = this.#address
    mkdirSync(dirname(this.#socket), { recursive: true, mode: 0o700 })
    rmSync(this.#socket, { force: true })
    const options = [
      'BatchMode=yes',
      'ExitOnForwardFailure=yes',
      'StreamLocalBindMask=0177',
      'ServerAliveInterval=5',
      'ServerAliveCountMax=3',
    ].flatMap((option) => ['-o', option])
    const where = [
      ...(port === null ? [] : ['-p', String(port)]),
      ...(user === null ? [] : ['-l', user]),
      '--',
      host,
    ]
    const ssh = Bun.spawn(['ssh', '-T', ...options, '-L', `${this.#socket}:${socket}`, ...where, 'cat'], {
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    this.#process = ssh
    let errors = ''
    const reading = (async () => {
      const decoder = new TextDecoder()
      for await (const chunk of ssh.stderr)
        errors = (errors + decoder.decode(chunk, { stream: true })).slice(-MAX_ERRORS)
    })()
    for (const until = performance.now() + CONNECT_MS; ; ) {
      if (existsSync(this.#socket)) return
      if (hasEnded(ssh) || performance.now() > until) break
      await within(POLL_MS, ssh.exited, null)
    }
    ssh.kill()
    await ssh.exited
    await reading
    const said = errors.trim().split('\n').at(-1)
    const byHand = ['ssh', ...where.filter((word) => word !== '--')].join(' ')
    throw new Error(
      `ssh did not connect${said ? ` (${said.replace(/\.$/, '')})` : ''}. Try "${byHand}" by hand: it must ask nothing`,
    )
  }
}

/** Reports whether a process has ended, by itself or by a signal. */
const hasEnded = ({ exitCode, signalCode }: Bun.Subprocess): boolean =>
  exitCode !== null || signalCode !== null
