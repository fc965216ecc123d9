import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, dirname, join } from 'node:path'

/** The npm package that has the executable. */
const PACKAGE = '@owner/berth'

/**
 * Finds the executable: the variable `BERTH_EXECUTABLE`, else the package of it that the project has installed, else `berth` on
 * PATH.
 *
 * @returns the command that runs it
 * @throws Error that names the command to install it, if it is not found
 */
export function berthCommand(): string[] {
  const named = process.env.BERTH_EXECUTABLE
  if (named) {
    if (isExecutable(named)) return [named]
    throw new Error(`BERTH_EXECUTABLE names ${named}, which is not an executable file.`)
  }
  const installed = fromPackage()
  if (installed) return installed
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const candidate = join(directory, 'berth')
    if (directory !== '' && isExecutable(candidate)) return [candidate]
  }
  throw new Error(
    `berth was not found, which starts an instance for tests: run "npm install --save-dev ${PACKAGE}", put berth on PATH, or set BERTH_EXECUTABLE to its path.`,
  )
}

/** The command of the package, as its package.json names it, which a project has installed. */
function fromPackage(): string[] | null {
  let manifest: string
  try {
    manifest = createRequire(join(process.cwd(), 'package.json')).resolve(`${PACKAGE}/package.json`)
  } catch {
    return null
  }
  const { bin } = JSON.parse(readFileSync(manifest, 'utf8')) as { bin?: string | Record<string, string> }
  const path = typeof bin === 'string' ? bin : bin?.berth
  const file = path && join(dirname(manifest), path)
  if (!file || !existsSync(file)) return null
  return /\.[cm]?js$/.test(file) ? [process.execPath, file] : [file]
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
