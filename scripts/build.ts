/** Builds dist/berth. */
import { mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MANIFEST } from '../src/http/dashboard/assets.ts'
import { bundleDashboard } from '../src/http/dashboard/bundle.ts'
import { compile } from './compile.ts'

const root = join(import.meta.dir, '..')
const target = join(root, 'dist/berth')
const fresh = join(root, 'dist/.berth.new')

mkdirSync(join(root, 'dist'), { recursive: true })
rmSync(fresh, { force: true })
/** Where the bundled dashboard lies until it is embedded. */
const dashboard = join(root, 'dist/dashboard')
const started = performance.now()
// Told by `berth version`; a source archive without git has none.
const git = Bun.which('git')
const head = git && Bun.spawnSync([git, 'rev-parse', '--short=12', 'HEAD'], { cwd: root, stderr: 'ignore' })
const commit = head && head.exitCode === 0 ? head.stdout.toString().trim() : null
try {
  await writeDashboard(dashboard)
  compile(
    'src/main.ts',
    fresh,
    commit ? { BERTH_COMMIT: JSON.stringify(commit) } : {},
    ['src/compute/local/network/outbound/relay-worker.ts', 'src/compute/emulators/worker.ts'],
    [dashboard],
  )
} catch (error) {
  process.stderr.write(error instanceof Error ? error.message : String(error))
  console.error('The executable could not be built; see the messages above.')
  process.exit(1)
}
renameSync(fresh, target)
const seconds = ((performance.now() - started) / 1000).toFixed(1)
const megabytes = (statSync(target).size / 1e6).toFixed(0)
console.error(`Built dist/berth: ${megabytes} MB in ${seconds} s.`)

/** Bundles the dashboard into a directory, which the executable embeds. */
async function writeDashboard(directory: string): Promise<void> {
  const { script, style, assets } = await bundleDashboard()
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  for (const { name, gzip } of assets) writeFileSync(join(directory, name), gzip)
  writeFileSync(join(directory, MANIFEST), JSON.stringify({ script, style }))
}
