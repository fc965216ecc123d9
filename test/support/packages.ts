import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'

/** Where packages stay that are installed once for all runs. */
const INSTALLED = join(import.meta.dir, '../../dist/tests/packages')

/**
 * Returns the path of a `node_modules` with all that the package-lock.json of a directory names. It is installed at first, and
 * again when the directory's package.json or package-lock.json has changed: by Bun, which installs the same versions as
 * `npm ci` with a tenth of its processor time.
 *
 * @throws Error with what Bun said if the packages cannot be installed, as where the two files do not fit together
 */
export async function installedPackages(directory: string): Promise<string> {
  const files = ['package.json', 'package-lock.json']
  const manifests = files.map((file) => readFileSync(join(directory, file)))
  const key = Bun.hash(Buffer.concat(manifests)).toString(16)
  const kept = join(INSTALLED, `${basename(directory)}-${key}`)
  if (existsSync(kept)) return join(kept, 'node_modules')
  mkdirSync(INSTALLED, { recursive: true })
  const fresh = mkdtempSync(join(INSTALLED, 'new-'))
  try {
    for (const file of files) cpSync(join(directory, file), join(fresh, file))
    const child = Bun.spawn([process.execPath, 'install', '--frozen-lockfile', '--ignore-scripts'], {
      cwd: fresh,
      env: process.env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const [stderr, exitCode] = await Promise.all([child.stderr.text(), child.exited])
    if (exitCode !== 0) throw new Error(`bun install in ${directory} ended with ${exitCode}: ${stderr}`)
    // If another run was first, its packages are as good.
    if (!existsSync(kept)) renameSync(fresh, kept)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
  return join(kept, 'node_modules')
}
