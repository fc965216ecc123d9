import { readdir, realpath, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import type { Detection } from '../../hosting/detection/detect.ts'
import { action } from '../command.ts'
import { CommandError } from '../errors.ts'
import { findDataDirectory } from '../find-instance.ts'
import { unreadable } from '../local-file.ts'
import { flag, text } from '../options.ts'
import { paint, printable } from '../output.ts'
import type { OutputStream, ProcessContext } from '../process-context.ts'

/** `berth detect` */
export const detect = action({
  usage: 'detect [DIR]',
  summary: 'show how the app of a directory would be run',
  description:
    'Shows how berth would install, build and start the app of a directory, and why. Runs nothing of it.',
  access: 'none',
  json: 'what was found as JSON',
  arguments: { DIR: { description: 'the directory (default: the working directory)' } },
  options: {
    directory: text('PATH', 'the directory of the app in DIR; by default berth finds it'),
    write: flag('write what was found into berth.json'),
    force: flag('with --write: replace a berth.json that is there'),
  },
  help: `
It needs no instance: the files are read here, and the tools are those of this machine that a new server sees.
The exit code is 0 if an app was found with all its tools, else 1.

Examples:
  berth detect
  berth detect shop --directory backend
  berth detect shop --write
`,
  async run({ session: { context }, args: [dir = '.'], options, print }) {
    if (options.force && !options.write)
      throw new UsageError('--force replaces what --write writes: add --write.')
    const { detection, root } = await look(resolve(context.cwd, dir), options.directory, context)
    const { toDetection } = await import('../../resources/projects/detection.ts')
    const found = toDetection(detection)
    await print(found, () => describe(context.stdout, detection))
    if (options.write)
      await write(join(root, detection.directory), detection, options.force ?? false, context)
    const isWhole = detection.problem === null && detection.tools.every((tool) => tool.found !== null)
    if (detection.problem !== null) throw new CommandError(detection.problem.message)
    return isWhole ? 0 : 1
  },
})

/** Detects the app of a directory. @throws CommandError if it cannot be read, or a file of it has a mistake */
async function look(
  directory: string,
  within: string | undefined,
  { env, cwd }: ProcessContext,
): Promise<{ detection: Detection; root: string }> {
  const root = await realpath(directory).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT'
      ? new CommandError(`There is no directory ${directory}.`)
      : unreadable(directory, error)
  })
  await readdir(root).catch((error) => {
    throw unreadable(directory, error)
  })
  const [
    { LocalWorkspace },
    { findAppDirectory, workspaceTree },
    { detectApp },
    { LocalMachine },
    { AppError },
    { parseAppDirectory },
    { BerthError },
  ] = await Promise.all([
    import('../../compute/local/workspace.ts'),
    import('../../hosting/app-directory.ts'),
    import('../../hosting/detection/detect.ts'),
    import('../../hosting/detection/local-machine.ts'),
    import('../../hosting/app-runtime/plan.ts'),
    import('../../resources/projects/app-directory.ts'),
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
    return { detection: await detectApp({ workspace, directory: '.', within: path, machine }), root }
  } catch (error) {
    if (error instanceof BerthError)
      throw new CommandError(error.message.replace('"--directory" in the body', '--directory'))
    throw error instanceof AppError ? new CommandError(error.message) : error
  }
}

/** Writes a `berth.json` that says what was found. @throws CommandError if there is one already, or nothing to write */
async function write(
  directory: string,
  { berthJson }: Detection,
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
function describe(out: OutputStream, detection: Detection): string {
  const { kind, directory, install, build, release, start, health, tools, evidence } = detection
  const { leftOut, others, warnings } = detection
  const line = (label: string, value: string) =>
    `${paint(out, 'dim', label.padEnd(10))} ${printable(value)}\n`
  const optional = (label: string, value: string | null) => (value === null ? '' : line(label, value))
  const seenAt = ({ file, line: number }: Detection['evidence'][number]) =>
    number === null ? file : `${file}:${number}`
  return [
    line('Found', kind === null ? 'no app' : `${kind}${directory === '' ? '' : ` in ${directory}`}`),
    ...evidence.map((one) => line('', `${seenAt(one)}  ${one.says}`)),
    optional('Install', install),
    optional('Build', build),
    optional('Release', release),
    optional('Start', start?.kind === 'command' ? start.command : null),
    optional('Serves', start?.kind === 'files' ? start.folder || '.' : null),
    optional('Port', start?.kind === 'command' && start.port !== null ? String(start.port) : null),
    health === '/' ? '' : line('Health', health),
    ...tools.map(({ name, wanted, wantedBy, found }) => {
      const wish = wanted === null ? '' : ` (${wantedBy ?? 'the app'} asks for ${wanted})`
      return line('Tool', `${name} ${found ?? 'is not installed'}${wish}`)
    }),
    ...leftOut.map(({ what, why }) => line('Left out', `${what}, since ${why}`)),
    ...others.map((other) => line('Other app', `${other.kind} in ${other.directory || '.'}`)),
    ...warnings.map((warning) => line('Warning', warning)),
  ].join('')
}
