import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'

/** Where packages stay that are installed once for all runs. */
const INSTALLED = join(import.meta.dir, '../../dist/tests/packages')

/**
 * Returns the path of a `node_modules` with all that the lock file of a directory names. It is installed by `npm ci` at
 * first, and again when the directory's package.json or package-lock.json has changed.
 *
 * @throws Error with what npm said if the packages cannot be installed
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
    const child = Bun.spawn(['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd: fresh,
      env: process.env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const [stderr, exitCode] = await Promise.all([child.stderr.text(), child.exited])
    if (exitCode !== 0) throw new Error(`npm ci in ${directory} ended with ${exitCode}: ${stderr}`)
    // If another run was first, its packages are as good.
    if (!existsSync(kept)) renameSync(fresh, kept)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
  return join(kept, 'node_modules')
}
