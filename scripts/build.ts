/**
 * Builds dist/berth.
 *
 * Identifiers stay as they are: Elysia reads handlers' source to learn which parts of a request they
 * use, and renaming breaks that silently. Whitespace and syntax may go. The executable reads no `.env`
 * and no `bunfig.toml` of the folder it is started in.
 */
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '..')
const target = join(root, 'dist/berth')
const fresh = join(root, 'dist/.berth.new')

mkdirSync(join(root, 'dist'), { recursive: true })
rmSync(fresh, { force: true })
const started = performance.now()
// Told by `berth version`; a source archive without git has none.
const git = Bun.which('git')
const head = git && Bun.spawnSync([git, 'rev-parse', '--short=12', 'HEAD'], { cwd: root, stderr: 'ignore' })
const commit = head && head.exitCode === 0 ? head.stdout.toString().trim() : null
const build = Bun.spawnSync(
  [
    process.execPath,
    'build',
    '--compile',
    '--minify-whitespace',
    '--minify-syntax',
    '--bytecode',
    '--format=esm',
    '--splitting',
    '--no-compile-autoload-dotenv',
    '--no-compile-autoload-bunfig',
    '--define',
    'process.env.NODE_ENV="production"',
    ...(commit ? ['--define', `BERTH_COMMIT=${JSON.stringify(commit)}`] : []),
    'src/main.ts',
    '--outfile',
    fresh,
  ],
  { cwd: root, stdout: 'pipe', stderr: 'pipe' },
)
if (build.exitCode !== 0 || !existsSync(fresh)) {
  process.stderr.write(build.stdout.toString() + build.stderr.toString())
  console.error('The executable could not be built; see the messages above.')
  process.exit(1)
}
renameSync(fresh, target)
const seconds = ((performance.now() - started) / 1000).toFixed(1)
const megabytes = (statSync(target).size / 1e6).toFixed(0)
console.error(`Built dist/berth: ${megabytes} MB in ${seconds} s.`)
