import { fieldsOf } from '../../../runtime/is-object.ts'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { Evidence } from '../../app-runtime/plan.ts'
import { type Provider, type Strength, startCommand } from '../candidate.ts'
import type { SourceDirectory } from '../source.ts'
import { needsOf, readPin } from '../versions.ts'

/** Deno, by its configuration or by code that only Deno runs: a task, else the file that listens. */
export const deno: Provider = {
  name: 'deno',
  marks: /^(?:deno\.jsonc?|deno\.lock)$|^(?:main|server|mod|index|app)\.[jt]sx?$/,
  async look(directory) {
    const file = directory.first(['deno.json', 'deno.jsonc'])
    const tasks = await tasksOf(directory, file)
    const main = await findMain(directory, file !== null)
    if (file === null && (main === null || directory.has('package.json'))) return []
    const start = await findStart(directory, file, tasks, main)
    const build = 'build' in tasks ? 'deno task build' : null
    const frozen = directory.has('deno.lock') ? ' --frozen' : ''
    const cached = main !== null && (start?.isFile ?? false) ? ` --entrypoint ${shellQuote([main.path])}` : ''
    const hasPackages = file !== null || frozen !== ''
    return [
      {
        kind: 'Deno',
        strength: start?.strength ?? 'none',
        install: start !== null && hasPackages ? `deno install${frozen}${cached}` : null,
        build,
        start: start === null ? null : startCommand(start.command),
        obstacle: `${file} has none of the tasks start, serve, preview and dev, and there is no main.ts that listens.`,
        tools: needsOf('deno', [await readPin(directory, 'deno')]),
        evidence: start?.evidence ?? (file === null ? [] : [await directory.evidence(file)]),
        runs: /(?:^|[\s/;&])deno\b/,
      },
    ]
  },
}

/** How an app starts. */
interface Start {
  readonly command: string
  readonly strength: Strength
  readonly evidence: readonly Evidence[]
  /** Whether its main file is run itself. */
  readonly isFile?: boolean
}

/** The file that an app begins with. */
interface Main {
  readonly path: string
  /** Whether it listens by itself, exports what `deno serve` calls, or does neither as far as can be seen. */
  readonly way: 'listens' | 'exports' | null
  readonly flags: string
}

const LISTENS = /\bDeno\.(?:serve|listen)\b|\.listen\(|(?<![.\w])(?:listenAndS|s)erve\(/
const EXPORTS = /^export default (?:\{|app\b|router\b|server\b)|\bDeno\.ServeDefaultExport\b/

/** Matches code that Node.js and Bun do not run. */
const OF_DENO = /\bDeno\.\w|\bfrom\s+["'](?:jsr:|npm:|https:\/\/(?:deno\.land|esm\.sh)\/)/

async function findMain(directory: SourceDirectory, isConfigured: boolean): Promise<Main | null> {
  const paths = [
    'main',
    'server',
    'src/main',
    'src/server',
    'app',
    'index',
    'src/index',
    'src/app',
    'serve',
    'mod',
  ]
    .flatMap((name) => ['ts', 'tsx', 'js', 'jsx', 'mts'].map((ending) => `${name}.${ending}`))
    .filter((path) => directory.has(path))
  let first: Main | null = null
  for (const path of paths) {
    const code = await directory.code(path)
    if (!isConfigured && !OF_DENO.test(code)) continue
    const lines = code.split('\n')
    const way = LISTENS.test(code) ? 'listens' : lines.some((line) => EXPORTS.test(line)) ? 'exports' : null
    const found = { path, way, flags: /\bDeno\.openKv\(/.test(code) ? ' --unstable-kv' : '' } as const
    if (way !== null) return found
    // A library begins with mod.ts, and other code without a configuration may be anything.
    if (isConfigured && !/^mod\./.test(path)) first ??= found
  }
  return first
}

async function findStart(
  directory: SourceDirectory,
  file: string | null,
  tasks: Readonly<Record<string, string>>,
  main: Main | null,
): Promise<Start | null> {
  const names = ['start', 'serve', ...('build' in tasks ? ['preview'] : [])]
  const byTask = async (name: string, strength: Strength): Promise<Start> => ({
    strength,
    command: taskCommand(name, tasks[name] ?? ''),
    evidence: [await directory.evidence(file ?? '', new RegExp(`"${name}"\\s*:`))],
  })
  const task = names.find((name) => name in tasks)
  if (task !== undefined) return byTask(task, 'stated')
  const isServer = main !== null && main.way !== null
  if (!isServer && 'dev' in tasks) return byTask('dev', 'stated')
  if (main === null) return null
  const path = shellQuote([main.path])
  const [command, line] =
    main.way === 'exports'
      ? [`deno serve --allow-all${main.flags} --host $HOST --port $PORT ${path}`, EXPORTS]
      : [`${ADDRESS} deno run --allow-all${main.flags} ${path}`, LISTENS]
  return {
    command,
    strength: isServer ? 'proven' : 'weak',
    evidence: [await directory.evidence(main.path, line)],
    isFile: true,
  }
}

/** Makes Deno listen there, whatever port the code names. */
const ADDRESS = 'DENO_SERVE_ADDRESS="tcp:$HOST:$PORT"'

/** Returns the command that runs a task. `deno serve` takes no address but from its options. */
function taskCommand(name: string, text: string): string {
  const serve = /^deno serve (?!.*--port)([^&|;]*)$/.exec(text.trim())?.[1]
  if (serve !== undefined) return `deno serve --host $HOST --port $PORT ${serve}`
  return `${ADDRESS} deno task ${shellQuote([name])}`
}

/** Returns the commands of the tasks of a configuration, by name. Deno itself reports a mistake in it. */
async function tasksOf(directory: SourceDirectory, file: string | null): Promise<Record<string, string>> {
  const { tasks } = fieldsOf(file === null ? null : await directory.tables(file))
  return Object.fromEntries(
    Object.entries(fieldsOf(tasks)).map(([name, task]) => [
      name,
      String(typeof task === 'string' ? task : (fieldsOf(task).command ?? '')),
    ]),
  )
}
