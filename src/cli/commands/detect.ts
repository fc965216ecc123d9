import { readdir, realpath, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import type { Detection } from '../../resources/projects/model.ts'
import { action } from '../command.ts'
import { CommandError } from '../errors.ts'
import { findDataDirectory } from '../find-instance.ts'
import { unreadable } from '../local-file.ts'
import { flag, textOption } from '../options.ts'
import { paint, printable } from '../output.ts'
import type { OutputStream, ProcessContext } from '../process-context.ts'

/** `berth detect` */
export const detect = action({
  usage: 'detect [DIR]',
  summary: 'show how the app of a directory would be run',
  description:
    'Shows how berth would install, build and start the app of a directory, and why. Runs nothing of it.',
  operations: ['projects.detect'],
  access: 'api',
  json: 'what was found as JSON',
  arguments: { DIR: { description: 'the directory (default: the working directory)' } },
  options: {
    directory: textOption('PATH', 'the directory of the app in the code; by default berth finds it'),
    git: textOption('URL', 'look at a git repository, on a server'),
    ref: textOption('REF', 'its branch, tag or commit'),
    archive: textOption('FILE', 'look at a zip, tar or tar.gz, by its file or its URL, on a server'),
    server: textOption('SERVER', 'the server for --git and --archive; needed where there are several'),
    write: flag('write what was found into berth.json'),
    force: flag('with --write: replace a berth.json that is there'),
  },
  help: `
For a directory it needs no instance: the files are read here, and the tools are those of this machine that a new
server sees. A repository or an archive is read by a server, with its tools, and kept nowhere.
The exit code is 0 if an app was found with all its tools, else 1.

Examples:
  berth detect
  berth detect shop --directory backend
  berth detect shop --write
  berth detect --git https://example.com/shop.git --ref v2
`,
  async run({ session: { context }, args: [dir], options, connect, server, print }) {
    if (options.force && !options.write)
      throw new UsageError('--force replaces what --write writes: add --write.')
    const { git, ref, archive, directory } = options
    const { checkSourceOptions, prepareCode, requestWith, withDirectory } = await import(
      '../projects/sources.ts'
    )
    checkSourceOptions({ git, ref, archive, from: dir })
    let found: Detection
    if (git === undefined && archive === undefined) {
      const root = await rootOf(resolve(context.cwd, dir ?? '.'))
      found = await look(root, directory, context)
      await print(found, () => describe(context.stdout, found))
      if (options.write) await write(join(root, found.directory), found, options.force ?? false, context)
    } else {
      if (options.write)
        throw new UsageError('--write writes into a directory: name it, without --git and --archive.')
      const code = await prepareCode({ git, ref, archive }, context)
      const request = requestWith(withDirectory(code, directory), code.archive)
      const client = await connect()
      found = await client.call('projects.detect', { params: { serverId: await server() }, ...request })
      await print(found, () => describe(context.stdout, found))
    }
    if (found.problem !== null) throw new CommandError(found.problem)
    return found.tools.every((tool) => tool.found !== null) ? 0 : 1
  },
})

/** Returns the real path of a directory. @throws CommandError if it cannot be read */
async function rootOf(directory: string): Promise<string> {
  const root = await realpath(directory).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT'
      ? new CommandError(`There is no directory ${directory}.`)
      : unreadable(directory, error)
  })
  await readdir(root).catch((error) => {
    throw unreadable(directory, error)
  })
  return root
}

/** Detects the app of a directory. @throws CommandError if a file of it has a mistake */
async function look(
  root: string,
  within: string | undefined,
  { env, cwd }: ProcessContext,
): Promise<Detection> {
  const [
    { LocalWorkspace },
    { AppError, findAppDirectory, workspaceTree },
    { detectApp, LocalMachine },
    { parseAppDirectory },
    { toDetection },
    { BerthError },
  ] = await Promise.all([
    import('../../compute/trees.ts'),
    import('../../hosting/app.ts'),
    import('../../hosting/detection/detect.ts'),
    import('../../resources/projects/app-directory.ts'),
    import('../../resources/projects/detection.ts'),
    import('../../errors.ts'),
  ])
  const workspace = new LocalWorkspace(root)
  try {
    const named = parseAppDirectory('--directory', within ?? '.')
    const { path, problem } = await findAppDirectory(workspaceTree(workspace, ''), named)
    if (problem !== null) throw new CommandError(problem)
    const dataDir = findDataDirectory(undefined, env, cwd)
    const machine = new LocalMachine({ path: env.PATH ?? '', variables: env, dataDir })
    // Not empty: it is the source of a project, and no workspace, whose directory "projects" is left out.
    return toDetection(await detectApp({ workspace, directory: '.', within: path, machine }))
  } catch (error) {
    if (error instanceof BerthError)
      throw new CommandError(error.message.replace('"--directory" in the body', '--directory'))
    throw error instanceof AppError ? new CommandError(error.message) : error
  }
}

/** Writes a `berth.json` that says what was found. @throws CommandError if there is one already, or nothing to write */
async function write(
  directory: string,
  { berth_json: berthJson }: Detection,
  force: boolean,
  { stderr }: ProcessContext,
): Promise<void> {
  if (berthJson === null) throw new CommandError('Nothing was found that berth.json could say.')
  const file = join(directory, 'berth.json')
  try {
    await writeFile(file, `${JSON.stringify(berthJson, null, 2)}\n`, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unreadable(file, error)
    throw new CommandError(`There is a ${printable(file)} already. --force replaces it.`)
  }
  await stderr.write(`Wrote ${printable(file)}.\n`)
}

/** Describes what was found, for a person. */
function describe(out: OutputStream, found: Detection): string {
  const { kind, directory, install, build, release, start, serves, port, health, evidence } = found
  const line = (label: string, value: string) =>
    `${paint(out, 'dim', label.padEnd(10))} ${printable(value)}\n`
  const optional = (label: string, value: string | null) => (value === null ? '' : line(label, value))
  const seenAt = ({ file, line: number }: Detection['evidence'][number]) =>
    number === null ? file : `${file}:${number}`
  return [
    line('Found', kind === null ? 'no app' : `${kind}${directory === '.' ? '' : ` in ${directory}`}`),
    ...evidence.map((one) => line('', `${seenAt(one)}  ${one.says}`)),
    optional('Install', install),
    optional('Build', build),
    optional('Release', release),
    optional('Start', start),
    optional('Serves', serves),
    optional('Port', port === null ? null : String(port)),
    health === '/' ? '' : line('Health', health),
    ...found.tools.map(({ name, wanted, wanted_by, found: version }) => {
      const wish = wanted === null ? '' : ` (${wanted_by ?? 'the app'} asks for ${wanted})`
      const missing = wanted === null ? 'is not installed' : 'has no version here that fits'
      return line('Tool', `${name} ${version ?? missing}${wish}`)
    }),
    ...found.left_out.map(({ what, why }) => line('Left out', `${what}, since ${why}`)),
    ...found.others.map(({ kind: other, directory: at, berth_json: berthJson }) =>
      line('Other app', `${other} in ${at || '.'}${berthJson === null ? '' : `: ${berthJson.start}`}`),
    ),
    ...found.warnings.map((warning) => line('Warning', warning)),
  ].join('')
}
