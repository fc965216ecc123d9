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
 * Levels of nested functions that have bytecode. All levels take 7 MB more of the executable, and save 6 of the 49 ms of a
 * start, since the deeper ones are compiled when they are first called.
 */
const BYTECODE_DEPTH = 1

/** What a program is compiled with besides its file. */
export interface CompileOptions {
  /** Names that stand for a JavaScript expression each. */
  readonly defines?: Readonly<Record<string, string>>
  /** Files of Workers; each lies in the executable by its path below the program's directory. */
  readonly workers?: readonly string[]
  /** More folders that are embedded as they are. */
  readonly folders?: readonly string[]
  /**
   * Another system than this one: its name for Bun, and the file of its Bun. Without the name `process.platform` would be
   * that of this machine. Bytecode is the same for all systems.
   */
  readonly target?: { readonly name: string; readonly bun: string }
}

/**
 * Compiles a program of this repository as berth is compiled. The same sources give the same bytes under the same name of the
 * executable, in whatever directory they are: that name is in it.
 *
 * Identifiers stay as they are: Elysia reads handlers' source to learn which parts of a request they
 * use, and renaming breaks that silently. Whitespace and syntax may go. The executable reads no `.env`
 * and no `bunfig.toml` of the folder it is started in.
 *
 * @param entry the program's file
 * @param outfile where the executable goes
 * @throws Error with what the compiler said
 */
export function compile(
  entry: string,
  outfile: string,
  { defines = {}, workers = [], folders = [], target }: CompileOptions = {},
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
      `--bytecode-depth=${BYTECODE_DEPTH}`,
      '--format=esm',
      '--splitting',
      `--compile-jit-policy=${STARTUP_JIT_POLICY}`,
      '--no-compile-autoload-dotenv',
      '--no-compile-autoload-bunfig',
      ...(target ? [`--target=${target.name}`, `--compile-executable-path=${target.bun}`] : []),
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
