import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ifPresent, readTextOrNull } from '../runtime/if-present.ts'
import { isMusl } from '../system/linux/files.ts'

/** A C library. An executable of berth runs with one of them only. */
export type LibcName = 'glibc' | 'musl'

/** Returns the C library of this process; null on macOS, which has one of its own. */
export const libcOf = (platform: NodeJS.Platform): LibcName | null =>
  platform !== 'linux' ? null : isMusl() ? 'musl' : 'glibc'

/** The program that has installed an executable and that replaces it. */
export interface Installer {
  readonly name: 'npm' | 'pip' | 'dpkg' | 'brew' | 'nix'
  /** The command by which a person installs a newer one. */
  readonly upgrade: string
}

/**
 * Returns the program that has installed an executable, by where it is.
 *
 * @param executable its path, without symbolic links
 * @returns null for one that a person or `install.sh` has put there
 */
export function installerOf(executable: string): Installer | null {
  const [, scope] = /\/node_modules\/(?:(@[\w.-]+)\/)?berth-[\w-]+\/(?:.*\/)?berth$/.exec(executable) ?? []
  if (scope !== undefined) return { name: 'npm', upgrade: `npm install ${scope}/berth@latest` }
  if (executable.startsWith('/nix/store/')) return { name: 'nix', upgrade: 'nix profile upgrade berth' }
  if (executable.includes('/Cellar/berth/')) return { name: 'brew', upgrade: 'brew upgrade berth' }
  const wheel = wheelOf(executable)
  if (wheel !== null) return { name: 'pip', upgrade: `pip install --upgrade ${wheel}` }
  const owned = readTextOrNull('/var/lib/dpkg/info/berth.list')
  return owned?.split('\n').includes(executable)
    ? { name: 'dpkg', upgrade: 'sudo apt install ./berth_VERSION_ARCHITECTURE.deb' }
    : null
}

/**
 * Returns the name of the Python package that an executable belongs to, whose metadata is in the environment's
 * `site-packages` (packaging.python.org, recording installed projects); null if there is none.
 */
function wheelOf(executable: string): string | null {
  const libraries = join(dirname(executable), '../lib')
  for (const python of ifPresent(() => readdirSync(libraries)) ?? []) {
    if (!python.startsWith('python')) continue
    for (const place of ['site-packages', 'dist-packages']) {
      for (const entry of ifPresent(() => readdirSync(join(libraries, python, place))) ?? []) {
        const [, name] = /^(\w+_berth_cli)-.*\.dist-info$/.exec(entry) ?? []
        if (name && existsSync(join(libraries, python, place, entry, 'RECORD')))
          return name.replaceAll('_', '-')
      }
    }
  }
  return null
}
