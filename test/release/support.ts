import { expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cleanEnvironment } from '../support/serve.ts'

/** How a program ended. */
export interface Ended {
  exitCode: number
  stdout: string
  stderr: string
}

/** A temporary directory that is also the home of what runs in it. */
export class Machine implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'release-'))

  /** The environment of programs: no variable of berth, and nothing that a package manager writes goes elsewhere. */
  readonly env: Record<string, string> = {
    ...cleanEnvironment(),
    HOME: this.path,
    npm_config_cache: join(this.path, '.npm'),
    npm_config_update_notifier: 'false',
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
    PIP_NO_CACHE_DIR: '1',
  }

  constructor() {
    for (const name of ['XDG_STATE_HOME', 'XDG_CONFIG_HOME', 'CI']) delete this.env[name]
  }

  /** Runs a program to its end, in this directory unless another is given. */
  async run(command: string[], { cwd = this.path, env = {}, stdin = '' } = {}): Promise<Ended> {
    const child = Bun.spawn(command, {
      cwd,
      env: { ...this.env, ...env },
      stdin: new Blob([stdin]),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [stdout, stderr, exitCode] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ])
    return { exitCode, stdout, stderr }
  }

  /** Runs a program that has to succeed, and returns what it printed. */
  async output(command: string[], options: Parameters<Machine['run']>[1] = {}): Promise<string> {
    const { exitCode, stdout, stderr } = await this.run(command, options)
    if (exitCode !== 0) throw new Error(`${command.join(' ')} exited with ${exitCode}: ${stderr}${stdout}`)
    return stdout
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

/** Says why a test is skipped, in the line that the whole run prints again; reports whether it is. */
export function lacks(reason: string | null): boolean {
  if (reason !== null) console.error(`SKIP ${reason}`)
  return reason !== null
}

/** Seconds in which a person gets from nothing to a passed test. Downloads come from servers of this machine. */
const SOON = 60

/**
 * Prints how long a person's commands take until their first test has passed.
 *
 * @throws if the test has not passed, or not soon
 */
export async function timed(who: string, commands: Promise<string>): Promise<void> {
  const began = performance.now()
  const printed = await commands
  const seconds = (performance.now() - began) / 1_000
  console.log(`${who}: from nothing to a passed test in ${seconds.toFixed(1)} s`)
  expect(printed.trimEnd()).toEndWith('it works')
  expect(seconds).toBeLessThan(SOON)
}
