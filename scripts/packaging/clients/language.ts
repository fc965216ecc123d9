import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** How the client of a language is generated and packed. */
export interface ClientLanguage {
  /** Its directory of `src/clients`. */
  readonly name: string
  /** Its name for people. */
  readonly title: string
  /** The directories of `dist/clients` that it fills; they are empty when {@link build} begins. */
  readonly outputs: readonly string[]
  /**
   * Writes the generated part into the source, where git ignores it.
   *
   * @throws Missing if a tool is missing that this machine cannot fetch
   */
  generate(work: { document: string; source: string; cache: string }): Promise<void>
  /**
   * Packs a copy of the source, which has the generated part and the owner's name.
   *
   * @param work `output` is `dist/clients`, `version` that of berth
   * @throws Missing if a tool is missing that this machine cannot fetch
   */
  build(work: { source: string; cache: string; output: string; version: string }): Promise<void>
}

/** A tool or a registry that is out of reach: the language is skipped, and the message says why. */
export class Missing extends Error {}

/**
 * Runs a program to its end.
 *
 * @returns its standard output
 * @throws Error with what it printed if it failed
 */
export async function execute(
  command: readonly string[],
  options: { cwd: string; env?: Record<string, string> },
): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [out, error, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}:\n${out}${error}`)
  return out
}

/**
 * Does something once for a cache, such as the installation of pinned tools: again only if `pins` has changed since.
 *
 * @param cache its directory
 * @param pins what is installed there
 */
export async function once(cache: string, pins: string, install: () => Promise<void>): Promise<void> {
  const done = join(cache, 'installed')
  if (existsSync(done) && readFileSync(done, 'utf8') === pins) return
  await install()
  writeFileSync(done, pins)
}
