import { UsageError } from '../../errors.ts'
import type { Build } from '../../resources/builds/model.ts'
import type { Client } from '../client.ts'
import { action, call, type Noun, rows } from '../command.ts'
import { isWholeId } from '../ids.ts'
import { buildLog, LOG_OPTIONS, showLog } from '../log.ts'
import { type Named, type NameWords, pick } from '../names.ts'
import { flag, textOption } from '../options.ts'
import { count, facts, type Style, shorten } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import type { Column } from '../table.ts'

/** Characters of a goal to show in a table. */
const SHOWN_GOAL = 49

const COLUMNS: readonly Column<Build>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'STATUS', cell: buildStatus, style: statusStyle },
  { heading: 'GOAL', cell: ({ goal }) => firstLine(goal, SHOWN_GOAL), elastic: true },
  { heading: 'SERVER', cell: ({ serverId }) => serverId, minor: 1 },
  { heading: 'URL', cell: ({ url }) => url ?? '' },
]

const buildFacts = (build: Build): [string, string][] => [
  ['ID', build.id],
  ['Status', buildStatus(build)],
  ['Goal', firstLine(build.goal, 2_000)],
  ['Server', build.serverId],
  [
    'Steps',
    build.steps.map(({ key, status, skipped }) => `${key} ${skipped ? 'skipped' : status}`).join(', '),
  ],
  ['Artifacts', artifactsText(build.artifacts)],
  ['URL', build.url ?? '–'],
  ['Created', build.createdAt],
]

/** Returns the progress of a build. The API has no failed status: a failed build is completed without a URL. */
function buildStatus({ status, url, steps }: Build): string {
  if (status === 'queued') return 'queued'
  if (status === 'completed' && url !== null)
    return isIdle(steps) ? 'completed, nothing implemented' : 'completed'
  const at = steps.find((step) => step.status !== 'done')?.key ?? 'plan'
  return status === 'running' ? `running, ${at}` : `failed in ${at}`
}

/** Reports whether nobody worked on the goal. */
const isIdle = (steps: Build['steps']): boolean => steps.some(({ skipped }) => skipped === true)

function statusStyle({ status, url, steps }: Build): Style {
  if (status !== 'completed' || (url !== null && isIdle(steps))) return 'yellow'
  return url === null ? 'red' : 'green'
}

/** Returns the first line of a goal, of at most `length` characters. */
function firstLine(goal: string, length: number): string {
  const [first = '', ...more] = goal.trim().split('\n')
  return shorten(more.length > 0 ? `${first}…` : first, length)
}

function artifactsText(artifacts: readonly string[]): string {
  if (artifacts.length === 0) return '–'
  const [shown, rest] = [artifacts.slice(0, 10), artifacts.length - 10]
  return rest > 0 ? `${shown.join(', ')} and ${count(rest, 'more file')}` : shown.join(', ')
}

const server = textOption('SERVER', 'its server; found out where it is left out')
const buildOn = textOption('SERVER', 'the server to build on; needed where there are several')

/** `berth builds` */
export const buildsNoun: Noun = {
  name: 'builds',
  summary: 'build apps from goals: plan, scaffold, implement, install, build, deploy',
  description:
    'Builds apps from goals, on a server whose workspace they become. Plain "berth builds" lists the builds.',
  names: [{ placeholder: 'BUILD', words: null, list: listNamed }],
  commands: [
    action({
      usage: 'run <GOAL>',
      description: 'build an app for a goal; - reads the goal from standard input',
      access: 'api',
      options: {
        server: buildOn,
        follow: flag('follow it to its end (the default)', { short: 'f', conflicts: 'detach' }),
        detach: flag('return at once, while it is built', { short: 'd' }),
      },
      help: `
The goal says what is to be built. A template is chosen for it and copied into the server's workspace, the agent
implements the goal there, and the app is installed, built and published. Where the workspace has an app already,
the build goes on with that; your files are never overwritten. PLAN.md in the workspace says what was decided, and why.

Phases and log go to stderr, the URL to stdout. Ctrl-C leaves the build going. The exit code is 0 when the app
answers, 1 where the build failed.

Examples:
  berth builds run "A landing page for a bakery"
  berth builds run "A todo API" --server srv_… --detach
  berth builds run - < goal.md
`,
      async run({ session, args: [given], options, connect, server, print }) {
        const goal = await readGoal(given, session.context)
        const client = await connect()
        const serverId = await server()
        const created = await client.call('builds.create', { params: { serverId }, body: { goal } })
        const { build_id: id } = created
        const started = `Building ${id} on ${serverId}.\n`
        if (options.detach) return print(created, () => started + logsHint(id))
        if (!options.json) await session.context.stderr.write(started)
        const { followBuild } = await import('../builds/follow.ts')
        return followBuild(session, client, { id, serverId }, options.json)
      },
    }),
    call('builds.create', {
      usage: 'create <GOAL>',
      description: 'build an app for a goal and return at once',
      options: { server: buildOn },
      async request([goal], _, { server }) {
        if (goal.trim() === '') throw new UsageError('The goal is empty. Say what is to be built.')
        const serverId = await server()
        return { params: { serverId }, body: { goal } }
      },
      id: ({ build_id: id }) => id,
      show: ({ build_id: id }) => `Building ${id}.\n${logsHint(id)}`,
    }),
    action({
      usage: 'list',
      operations: ['builds.listAll', 'builds.list'],
      description: 'list builds, newest first',
      access: 'api',
      options: { server: textOption('SERVER', 'those of one server only') },
      async run({ options, connect, idOf, print }) {
        const none = 'No builds yet. Begin one with: berth builds run "A landing page for a bakery"\n'
        await print(
          { builds: await listBuilds(await connect(), await idOf('SERVER', options.server)) },
          rows('builds', COLUMNS, none),
        )
      },
    }),
    action({
      usage: 'get [BUILD]',
      operations: ['builds.get'],
      description: 'show one build',
      access: 'api',
      options: { server },
      async run({ args: [id], options, connect, idOf, print }) {
        const build = await findBuild(await connect(), id, await idOf('SERVER', options.server))
        await print({ build }, (_, { out }) => facts(out, buildFacts(build)))
      },
    }),
    action({
      usage: 'logs [BUILD]',
      operations: ['builds.logs'],
      description: 'print what its phases did, and why it failed where it did',
      access: 'api',
      options: {
        server,
        ...LOG_OPTIONS,
        follow: flag('continue with new lines, until it is over or Ctrl-C; with --json one line each', {
          short: 'f',
        }),
      },
      async run({ args: [id], options, connect, idOf, print }) {
        const client = await connect()
        const build = await findBuild(client, id, await idOf('SERVER', options.server))
        const { SOURCE_WIDTH: width } = await import('../builds/follow.ts')
        return showLog(print, buildLog(client, build), { ...options, width })
      },
    }),
  ],
}

async function listNamed(client: Client, signal?: AbortSignal): Promise<Named[]> {
  const all = await listBuilds(client, undefined, signal)
  return all.map((build) => ({ id: build.id, description: buildState(build) }))
}

const buildState = (build: Build): string => `${buildStatus(build)}, ${build.goal.slice(0, 60)}`

const logsHint = (id: string): string => `Look at it with: berth builds logs ${id} -f\n`

async function readGoal(given: string, context: ProcessContext): Promise<string> {
  const { readText } = await import('../tasks/goal.ts')
  const goal = given === '-' ? await readText('-', context) : given
  if (goal.trim() === '') throw new UsageError('The goal is empty. Say what is to be built.')
  return goal
}

/** Lists the builds of a server, or of all servers that the key reaches, newest first. */
async function listBuilds(
  client: Client,
  server: string | undefined,
  signal?: AbortSignal,
): Promise<Build[]> {
  const { builds: all } =
    server === undefined
      ? await client.call('builds.listAll', { signal })
      : await client.call('builds.list', { params: { serverId: server }, signal })
  return all
}

const WORDS: NameWords = {
  one: 'build',
  listedBy: 'berth builds',
  none: 'Begin one with: berth builds run "A landing page for a bakery"',
}

/**
 * Finds a build by its id or the beginning of it, on any server if none is given; the only one if no id is given.
 *
 * @throws CommandError if there is none, or more than one
 */
async function findBuild(
  client: Client,
  given: string | undefined,
  server: string | undefined,
): Promise<Build> {
  if (server !== undefined && given !== undefined && isWholeId(given))
    return (await client.call('builds.get', { params: { serverId: server, buildId: given } })).build
  return pick(await listBuilds(client, server), given, WORDS, 'BUILD', buildState)
}
