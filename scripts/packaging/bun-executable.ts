import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Target } from './targets.ts'

/**
 * Writes the Bun of a target to a directory, and returns its path. npm downloads its package from the registry that it is
 * configured with, once; the archive is kept in a cache and compared with the pinned hash each time.
 *
 * @param cache the directory of the kept archives
 * @throws Error if npm cannot fetch it, or it is another file than the pinned one
 */
export function bunExecutable(target: Target, cache: string, directory: string): string {
  const archive = join(cache, `${target.bun.slice('@oven/'.length)}-${Bun.version}.tgz`)
  if (!existsSync(archive)) download(target.bun, archive)
  const digest = new Bun.CryptoHasher('sha512').update(readFileSync(archive)).digest('base64')
  if (`sha512-${digest}` !== target.integrity) {
    rmSync(archive)
    throw new Error(
      `${target.bun}@${Bun.version} is not the pinned file: it has sha512-${digest}. The registry serves another one, or scripts/packaging/targets.ts has the hash of another version.`,
    )
  }
  mkdirSync(directory, { recursive: true })
  run(['tar', '-xzf', archive, '-C', directory, '--strip-components=2', 'package/bin/bun'])
  return join(directory, 'bun')
}

/** Downloads the archive of a package of npm at the version of this Bun. */
function download(name: string, archive: string): void {
  const cache = join(archive, '..')
  mkdirSync(cache, { recursive: true })
  const fresh = mkdtempSync(join(cache, '.fetching-'))
  try {
    run([
      'npm',
      'pack',
      '--silent',
      '--ignore-scripts',
      '--pack-destination',
      fresh,
      `${name}@${Bun.version}`,
    ])
    const [file = ''] = [...new Bun.Glob('*.tgz').scanSync(fresh)]
    renameSync(join(fresh, file), archive)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** Runs a program of the machine to its end. @throws Error with what it printed if it fails */
export function run(command: string[], options: { cwd?: string; env?: Record<string, string> } = {}): string {
  const { env = {}, cwd } = options
  const child = Bun.spawnSync(command, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...process.env, ...env },
    stdin: 'ignore',
    stderr: 'pipe',
  })
  if (child.exitCode !== 0)
    throw new Error(
      `${command.slice(0, 2).join(' ')} failed: ${child.stderr.toString() || child.stdout.toString()}`,
    )
  return child.stdout.toString()
}
