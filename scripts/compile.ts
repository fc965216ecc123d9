import { existsSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '..')

/**
 * Folders that are embedded as they are. Each lies, by its own name, in the `import.meta.dir` that all
 * code of the executable has; permission bits are lost.
 */
const ASSETS = ['src/resources/templates/apps', 'docs']

/**
 * Factor of the counts of calls after which JavaScriptCore compiles a function, until the program calls
 * `Bun.unsafe.setJITPolicy(1)`. Most of the code that runs at a start would be compiled for nothing.
 */
const STARTUP_JIT_POLICY = 16

/**
 * Compiles a program of this repository as berth is compiled.
 *
 * Identifiers stay as they are: Elysia reads handlers' source to learn which parts of a request they
 * use, and renaming breaks that silently. Whitespace and syntax may go. The executable reads no `.env`
 * and no `bunfig.toml` of the folder it is started in.
 *
 * @param entry the program's file
 * @param outfile where the executable goes
 * @param defines names that stand for a JavaScript expression each
 * @param workers files of Workers; each lies in the executable by its path below the program's directory
 * @param folders more folders that are embedded as they are
 * @throws Error with what the compiler said
 */
export function compile(
  entry: string,
  outfile: string,
  defines: Record<string, string> = {},
  workers: readonly string[] = [],
  folders: readonly string[] = [],
): void {
  const defined = Object.entries({ 'process.env.NODE_ENV': '"production"', ...defines })
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
      `--compile-jit-policy=${STARTUP_JIT_POLICY}`,
      '--no-compile-autoload-dotenv',
      '--no-compile-autoload-bunfig',
      ...defined.flatMap(([name, value]) => ['--define', `${name}=${value}`]),
      ...[...ASSETS, ...folders].flatMap((folder) => ['--asset', folder]),
      entry,
      ...workers,
      '--outfile',
      outfile,
    ],
    { cwd: root, stdout: 'pipe', stderr: 'pipe' },
  )
  if (build.exitCode !== 0 || !existsSync(outfile)) {
    throw new Error(build.stdout.toString() + build.stderr.toString())
  }
}
