import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cleanEnvironment } from '../support/serve.ts'

/** The directory of the repository. */
export const root = join(import.meta.dir, '../..')

/** The release under test, which `scripts/test --release` builds. */
export const release = process.env.BERTH_TEST_RELEASE ?? join(root, 'dist/release')

export const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
export const owner = readFileSync(join(root, 'scripts/packaging/owner'), 'utf8').trim()

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

/**
 * Returns the commands of the README's block for a tool, such as `npm`, with the owner and the version of this release.
 *
 * @throws if the README has no such block
 */
export function readmeCommands(tool: string): string {
  const block = new RegExp(`^\`\`\`sh ${tool}\\n([\\s\\S]*?)^\`\`\``, 'm').exec(readme)?.[1]
  if (block === undefined) throw new Error(`The README has no commands for ${tool}.`)
  return block.replaceAll('OWNER', owner).replaceAll('VERSION', version)
}

const readme = readFileSync(join(root, 'README.md'), 'utf8')
