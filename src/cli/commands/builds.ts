import { type Command, InvalidArgumentError, Option } from 'commander'
import { UsageError } from '../../errors.ts'
import type { Build, CreatedBuild } from '../../resources/builds/model.ts'
import { chooseServer } from '../choose-server.ts'
import type { ConnectionOptions } from '../instance.ts'
import { facts, table } from '../output.ts'
import { path } from '../path.ts'
import { connect, printJson, type Session, withConnection, withJson } from '../session.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  server?: string
  detach?: boolean
  follow?: boolean
  tail?: number
}

/** Lines of a log that are shown where nothing else is said, as by the API. */
const TAIL = 200

const MORE_RUN = `
The goal says what is to be built. A template is chosen for it and copied into the server's workspace, the agent
implements the goal there, and the app is installed, built and published. Where the workspace has an app already,
the build goes on with that; your files are never overwritten. PLAN.md in the workspace says what was decided, and why.

Phases and log go to stderr, the URL to stdout. Ctrl-C leaves the build going. The exit code is 0 when the app
answers, 1 where the build failed.

Examples:
  berth builds run "A landing page for a bakery"
  berth builds run "A todo API" --server srv_… --detach
  berth builds run - < goal.md
`

/** Adds `builds` and what can be done with them. */
export function registerBuilds(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const builds = program
    .command('builds')
    .helpCommand(false)
    .summary('build apps from goals: plan, scaffold, implement, install, build, deploy')
    .description(
      'Builds apps from goals, on a server whose workspace they become. Plain "berth builds" lists the builds.',
    )
  const add = (usage: string, description: string) =>
    withConnection(withJson(builds.command(usage).description(description)))

  add('run <GOAL>', 'build an app for a goal; - reads the goal from standard input')
    .option('--server <SERVER>', 'the server to build on; needed where there are several')
    .addOption(new Option('-f, --follow', 'follow it to its end (the default)').conflicts('detach'))
    .option('-d, --detach', 'return at once, while it is built')
    .addHelpText('after', MORE_RUN)
    .action(async (given: string, options: Options) => {
      const { readText } = await import('../tasks/goal.ts')
      const goal = given === '-' ? await readText('-', session.terminal) : given
      if (goal.trim() === '') throw new UsageError('The goal is empty. Say what is to be built.')
      const client = await connect(session, options)
      const serverId = await chooseServer(client, options.server)
      const target = path`/servers/${serverId}/builds`
      const created = await client.request<CreatedBuild>('POST', target, { body: { goal } })
      const { build_id: id } = created
      if (options.detach && options.json) return printJson(session, created)
      const said = `Building ${id} on ${serverId}.\n`
      if (options.detach) return stdout.write(`${said}Look at it with: berth builds logs ${id} -f\n`)
      if (!options.json) await session.terminal.stderr.write(said)
      const { followBuild } = await import('../builds/follow.ts')
      session.exitCode = await followBuild(session, client, { id, serverId }, options.json)
    })

  add('list', 'list builds, newest first')
    .option('--server <SERVER>', 'those of one server only')
    .action(async (options: Options) => {
      const client = await connect(session, options)
      const [{ allBuilds }, { BUILD_COLUMNS }] = await Promise.all([
        import('../builds/find.ts'),
        import('../builds/show.ts'),
      ])
      const all: Build[] = await allBuilds(client, options.server)
      if (options.json) return printJson(session, { builds: all })
      if (all.length === 0)
        return stdout.write('No builds yet. Begin one with: berth builds run "A landing page for a bakery"\n')
      await stdout.write(table(stdout, BUILD_COLUMNS, all))
    })

  withServer(add('get <BUILD>', 'show one build')).action(async (id: string, options: Options) => {
    const client = await connect(session, options)
    const [{ findBuild }, { buildDetails }] = await Promise.all([
      import('../builds/find.ts'),
      import('../builds/show.ts'),
    ])
    const build = await findBuild(client, id, options.server)
    if (options.json) return printJson(session, { build })
    await stdout.write(facts(stdout, buildDetails(build)))
  })

  withServer(add('logs <BUILD>', 'print what its phases did, and why it failed where it did'))
    .option('-f, --follow', 'go on with what comes, until it is over or Ctrl-C; with --json one line each')
    .option('--tail <N>', `only the last lines of what is there (default ${TAIL})`, wholeNumber)
    .action(async (id: string, options: Options) => {
      const client = await connect(session, options)
      const [{ findBuild }, { logOf, SOURCE_WIDTH: width }, { showLog }] = await Promise.all([
        import('../builds/find.ts'),
        import('../builds/follow.ts'),
        import('../log.ts'),
      ])
      const log = logOf(await findBuild(client, id, options.server))
      session.exitCode = await showLog(session, client, log, { tail: TAIL, ...options, width })
    })
}

const withServer = (command: Command): Command =>
  command.option('--server <SERVER>', 'its server; found out where it is left out')

function wholeNumber(given: string): number {
  if (/^\d{1,5}$/.test(given)) return Number(given)
  throw new InvalidArgumentError('Expected a whole number of lines.')
}
