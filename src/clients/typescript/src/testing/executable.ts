import { accessSync, constants } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'

/** The npm package that has the executable. */
const PACKAGE = '@owner/berth'

/**
 * Finds the executable: the variable `BERTH_EXECUTABLE`, else the package of it that the project has installed, else `berth` on
 * PATH.
 *
 * @returns its path
 * @throws Error that names the command to install it, if it is not found
 */
export function berthExecutable(): string {
  const named = process.env.BERTH_EXECUTABLE
  if (named) {
    if (isExecutable(named)) return named
    throw new Error(`BERTH_EXECUTABLE names ${named}, which is not an executable file.`)
  }
  const installed = fromPackage()
  if (installed) return installed
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const candidate = join(directory, 'berth')
    if (directory !== '' && isExecutable(candidate)) return candidate
  }
  throw new Error(
    `berth was not found, which starts an instance for tests: run "npm install --save-dev ${PACKAGE}", put berth on PATH, or set BERTH_EXECUTABLE to its path.`,
  )
}

/**
 * Returns the path that the package of the executable has; null if the project has not installed it.
 *
 * @throws Error with the remedy, as the package has it, if the executable for this system is missing
 */
function fromPackage(): string | null {
  const require = createRequire(join(process.cwd(), 'package.json'))
  try {
    require.resolve(PACKAGE)
  } catch {
    return null
  }
  return (require(PACKAGE) as { path: string }).path
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
