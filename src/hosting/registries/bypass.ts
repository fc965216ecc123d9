import { join } from 'node:path/posix'
import type { Workspace } from '../../compute/workspace.ts'

/** Most bytes of a lock file that is read for its addresses. */
const MAX_BYTES = 16 * 2 ** 20

/** Most hosts that a line names. */
const MOST_HOSTS = 3

/** A package manager that asks the hosts in its lock file itself. */
interface Rule {
  readonly tool: string
  readonly command: RegExp
  readonly file: string
  /** Files that make it take no notice of this one. */
  readonly unless?: readonly string[]
  /** Matches an address, and captures its host. */
  readonly address: RegExp
  /** The hosts that it replaces by its registry. */
  readonly replaced?: readonly string[]
  /** The name of the program, if only berth's own replaces them. */
  readonly ofBerth?: string
}

const RESOLVED = /"resolved": *"https?:\/\/([^/"]+)/g

const RULES: readonly Rule[] = [
  {
    tool: 'npm',
    command: /\bnpm (?:ci|install|i)\b/,
    file: 'package-lock.json',
    address: RESOLVED,
    replaced: ['registry.npmjs.org'],
  },
  {
    tool: 'Bun',
    command: /\bbun (?:ci|install|i)\b/,
    file: 'package-lock.json',
    unless: ['bun.lock', 'bun.lockb'],
    address: RESOLVED,
  },
  {
    tool: 'Yarn 1',
    command: /\byarn\b/,
    file: 'yarn.lock',
    address: /^ {2}resolved "https?:\/\/([^/"]+)/gm,
    replaced: ['registry.yarnpkg.com', 'registry.npmjs.org'],
    ofBerth: 'yarn',
  },
  { tool: 'pnpm', command: /\bpnpm\b/, file: 'pnpm-lock.yaml', address: /\btarball: https?:\/\/([^/\s}]+)/g },
  { tool: 'uv', command: /\buv (?:sync|run)\b/, file: 'uv.lock', address: /\burl = "https?:\/\/([^/"]+)/g },
]

/**
 * Returns which downloads of a command go past the relay, each a sentence.
 *
 * @param directory of the command, relative to the workspace
 * @param isOfBerth reports whether a program is berth's own, because the machine has none
 */
export async function bypassesOf(
  command: string,
  workspace: Pick<Workspace, 'read'>,
  directory: string,
  isOfBerth: (program: string) => Promise<boolean>,
): Promise<string[]> {
  const textOf = async (name: string): Promise<string | null> => {
    try {
      return new TextDecoder().decode(await workspace.read(join(directory, name), MAX_BYTES))
    } catch {
      // There is none, or it is too large to look through.
      return null
    }
  }
  const found: string[] = []
  for (const { tool, command: pattern, file, unless = [], address, replaced = [], ofBerth } of RULES) {
    if (!pattern.test(command)) continue
    const others = await Promise.all(unless.map(textOf))
    const text = others.some((other) => other !== null) ? null : await textOf(file)
    const hosts = new Set([...(text ?? '').matchAll(address)].map(([, host = '']) => host))
    if (hosts.size === 0) continue
    if (ofBerth === undefined || (await isOfBerth(ofBerth))) for (const host of replaced) hosts.delete(host)
    if (hosts.size === 0) continue
    const named = [...hosts].sort().slice(0, MOST_HOSTS).join(', ')
    const more = hosts.size > MOST_HOSTS ? ` and ${hosts.size - MOST_HOSTS} more` : ''
    found.push(`${tool} asks ${named}${more} itself, as ${file} says, past berth's relay of registries.`)
  }
  return found
}
