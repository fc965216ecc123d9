import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { documentedOperations } from '../../src/cli/report/coverage.ts'
import { MANIFEST } from '../../src/http/dashboard/assets.ts'
import { bundleDashboard } from '../../src/http/dashboard/bundle.ts'
import { describeApi } from '../../src/instance/describe.ts'
import { type CompileOptions, compile } from '../compile.ts'
import { bundledPackages, type Component, ENTRY_POINTS, licensesText } from './components.ts'

/** The directory of the repository. */
export const root = join(import.meta.dir, '../..')

/** What every executable of one commit has in it. */
export interface Parts {
  readonly version: string
  /** The first twelve digits of the commit; null in a source archive without git. */
  readonly commit: string | null
  readonly packages: readonly Component[]
  /** What `berth licenses` prints. */
  readonly licenses: string
  /** The operations of the API's OpenAPI document, as JSON. */
  readonly operations: string
  /** Directories to embed. */
  readonly folders: readonly string[]
}

/** Bundles the dashboard and collects the licences, in directories below `dist/` that the executable embeds. */
export async function prepareParts(): Promise<Parts> {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const { script, style, report, assets, sources } = await bundleDashboard()
  const dashboard = emptied('dist/dashboard')
  for (const { name, gzip } of assets) writeFileSync(join(dashboard, name), gzip)
  writeFileSync(join(dashboard, MANIFEST), JSON.stringify({ script, style, report }))

  const packages = await bundledPackages(sources)
  const licenses = licensesText(version, packages)
  const folder = emptied('dist/licenses')
  writeFileSync(join(folder, 'licenses.txt.gz'), Bun.gzipSync(licenses, { library: 'libdeflate', level: 12 }))
  const operations = JSON.stringify(documentedOperations(await describeApi()))
  return { version, commit: headCommit(), packages, licenses, operations, folders: [dashboard, folder] }
}

/** Compiles the executable, whole or not at all. Its name is `berth` while it is compiled, since the name is in it. */
export function buildExecutable(
  { commit, folders, operations }: Parts,
  outfile: string,
  target?: CompileOptions['target'],
): void {
  const fresh = join(dirname(outfile), '.fresh')
  mkdirSync(fresh, { recursive: true })
  try {
    const [entry, ...workers] = ENTRY_POINTS
    compile(entry, join(fresh, 'berth'), {
      defines: {
        BERTH_OPERATIONS: JSON.stringify(operations),
        ...(commit ? { BERTH_COMMIT: JSON.stringify(commit) } : {}),
      },
      workers,
      folders,
      ...(target ? { target } : {}),
    })
    renameSync(join(fresh, 'berth'), outfile)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** Runs git in the repository. Returns what it printed; null without git or a repository. */
export function git(...args: string[]): string | null {
  const program = Bun.which('git')
  const child = program && Bun.spawnSync([program, ...args], { cwd: root, stderr: 'ignore' })
  return child && child.exitCode === 0 ? child.stdout.toString().trim() : null
}

const headCommit = (): string | null => git('rev-parse', '--short=12', 'HEAD')

function emptied(path: string): string {
  const directory = join(root, path)
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  return directory
}
