import { UsageError } from '../../errors.ts'
import type { Project } from '../../resources/projects/model.ts'
import { machineNow } from '../../runtime/clock.ts'
import type { Client } from '../client.ts'
import { action, call, factSheet, type Invocation, type Noun, rows } from '../command.ts'
import { CommandError } from '../errors.ts'
import { isWholeId } from '../ids.ts'
import { APP_LOG_OPTIONS, checkWorker, projectLog, showLog } from '../log.ts'
import { type Named, type NameWords, pick } from '../names.ts'
import { flag, repeatedOption, textOption } from '../options.ts'
import { count, facts, printable, type Style } from '../output.ts'
import { isWorker, STRICT } from '../projects/report.ts'
import { showWhile } from '../status-line.ts'
import { type Column, timeAgo } from '../table.ts'

const COLUMNS: readonly Column<Project>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'SLUG', cell: ({ slug }) => slug },
  { heading: 'NAME', cell: ({ name }) => name, minor: 3, elastic: true },
  { heading: 'STATUS', cell: projectStatus, style: statusStyle },
  { heading: 'VISIBILITY', cell: ({ visibility }) => visibility, minor: 2 },
  { heading: 'LIFECYCLE', cell: ({ lifecycle }) => lifecycle, minor: 4 },
  { heading: 'SERVER', cell: ({ server_id }) => server_id, minor: 1 },
  { heading: 'URL', cell: ({ url }) => url ?? '' },
]

const projectFacts = (project: Project): [string, string][] => [
  ['ID', project.id],
  ['Name', project.name],
  ['Slug', project.slug],
  ['Description', project.description ?? '–'],
  ['Status', projectStatus(project)],
  ...crashFacts(project),
  ...workerFacts(project),
  ...failedChangeFacts(project),
  ...project.warnings.map((text): [string, string] => ['Warning', text]),
  ['Visibility', project.visibility],
  ['Lifecycle', project.lifecycle],
  ['Server', project.server_id],
  ['Directory', ['projects', project.slug, ...(project.directory?.split('/') ?? [])].join('/')],
  ['Template', project.template ?? '–'],
  ['URL', project.url ?? '–'],
  ...portFacts(project),
  ['Created', project.created_at],
  ['Updated', project.updated_at],
]

/** Returns how the app of a project crashed, and what follows; nothing if it did not. */
function crashFacts({ crash, slug }: Project): [string, string][] {
  if (crash === undefined) return []
  return [
    ['Crashed', `${timeAgo(crash.since, machineNow())}: ${crash.reason}`],
    ['Starts again', nextStart(crash)],
    ['Next', `berth projects logs ${slug} says why; berth projects push sends the fix`],
  ]
}

/** Returns what the workers of a project do. */
const workerFacts = ({ workers }: Project): [string, string][] =>
  workers.map(({ name, command, status, exit_code: code, restarts }) => {
    const more = [
      ...(code === null ? [] : [`exit code ${code}`]),
      ...(restarts === 0 ? [] : [count(restarts, 'restart')]),
    ]
    return ['Worker', `${name}, ${[status, ...more].join(', ')}: ${command}`]
  })

/** Returns which change of the app's files did not come up; nothing if the last one did. */
function failedChangeFacts({ failed_change: failed }: Project): [string, string][] {
  if (failed === undefined) return []
  const when = timeAgo(failed.at, machineNow())
  return [['Last change', `failed ${when}: ${failed.reason} The version before runs.`]]
}

/** Returns where the URL of a project leads if another program has its port; nothing if none has. */
function portFacts({ port_taken, slug }: Project): [string, string][] {
  if (port_taken !== true) return []
  return [
    ['Port', 'taken by another program: the URL leads there'],
    ['Next', `end that program; until then ${slug}.localhost on berth's own port leads to the project`],
  ]
}

/** Returns when an app that crashed is started again. */
function nextStart({ restarts_at, attempt }: NonNullable<Project['crash']>): string {
  if (restarts_at === null) return 'not by itself: it crashed too often'
  const seconds = Math.ceil((Date.parse(restarts_at) - machineNow()) / 1000)
  return `${seconds > 0 ? `in ${seconds} s` : 'now'}, attempt ${attempt}`
}

/** Returns the state of the app, and how far its bring-up is if that is not over. */
function projectStatus(project: Project): string {
  return project.port_taken === true ? `${appStatus(project)}, port taken` : appStatus(project)
}

function appStatus({ runtime_status, init_phase, crash }: Project): string {
  const state = crash === undefined ? runtime_status : 'crashed'
  if (init_phase === null || init_phase === 'ready') return state
  if (runtime_status === 'unbuilt') return init_phase
  // The version before goes on.
  if (init_phase === 'failed') return `${state}, update failed`
  return `${state}, ${init_phase}`
}

function statusStyle({ runtime_status, init_phase, crash, port_taken }: Project): Style | undefined {
  if (init_phase === 'failed' || crash !== undefined || port_taken) return 'red'
  if (init_phase !== null && init_phase !== 'ready') return 'yellow'
  return runtime_status === 'running' ? 'green' : 'dim'
}

const WORDS: NameWords = {
  one: 'project',
  by: ['slug', 'name'],
  listedBy: 'berth projects',
  none: 'Make one with "berth projects create".',
}

/**
 * Finds a project by its id or the beginning of it, its slug or its name; the only one if nothing is given.
 *
 * @throws CommandError if there is none, or more than one
 */
export async function findProject(client: Client, given: string | undefined): Promise<Project> {
  if (given !== undefined && isWholeId(given))
    return client.call('projects.get', { params: { projectId: given } })
  const { projects: all } = await client.call('projects.listAll')
  // One project's slug may be another's name: the slug wins, as no other has it.
  const named = all.map((project) => ({ project, id: project.id, ...nameable(project) }))
  return pick(named, given, WORDS, 'PROJECT').project
}

const namesOf = ({ slug, name }: Project): string[] => [...new Set([slug, name])]

/** Returns what a project is named by, and what distinguishes it from others. */
const nameable = (project: Project): Pick<Named, 'names' | 'state' | 'createdAt'> => ({
  names: namesOf(project),
  state: projectStatus(project),
  createdAt: project.created_at,
})

/** Returns the path parameters of the project that a person names. */
const projectParams = async (
  named: string | undefined,
  { connect }: Pick<Invocation<unknown, unknown>, 'connect'>,
) => ({
  params: { projectId: (await findProject(await connect(), named)).id },
})

const EXIT_CODES =
  'The exit code is 0 when the app is ready, 1 where it failed, 3 where it waits for variables.'

/** `berth projects` */
export const projectsNoun: Noun = {
  name: 'projects',
  summary: 'create and manage projects: apps with a URL',
  description:
    'Creates and manages projects: apps on a server, each with a URL of its own. Plain "berth projects" lists them. A project is named by its id, its slug or its name.',
  names: [
    { placeholder: 'PROJECT', words: null, list: listNamed },
    { placeholder: 'PROJECTS', isCommaSeparated: true, words: WORDS, list: listNamed },
  ],
  commands: [
    action({
      usage: 'list',
      operations: ['projects.listAll', 'projects.list'],
      description: 'list all projects, newest first',
      access: 'api',
      options: { server: textOption('SERVER', 'those of one server only') },
      async run({ options, connect, idOf, print }) {
        const client = await connect()
        const server = await idOf('SERVER', options.server)
        const response =
          server === undefined
            ? await client.call('projects.listAll')
            : await client.call('projects.list', { params: { serverId: server } })
        await print(
          response,
          rows('projects', COLUMNS, 'No projects yet. Make one with "berth projects create".\n'),
        )
      },
    }),
    action({
      usage: 'create [DIR]',
      operations: ['projects.create'],
      description: 'make a project and bring its code up',
      access: 'api',
      options: {
        from: textOption('DIR', 'the same as DIR: the directory that the code is in'),
        template: textOption('TEMPLATE', 'start from a template; "berth templates" lists them'),
        git: textOption('URL', 'take the code from a git repository'),
        ref: textOption('REF', 'its branch, tag or commit'),
        archive: textOption('FILE', 'take the code from a zip, tar or tar.gz, by its file or its URL'),
        directory: textOption('PATH', 'the directory of the app in the code; by default berth finds it'),
        server: textOption('SERVER', 'the server it is for; needed where there are several'),
        name: textOption('TEXT', 'by default that of the directory, repository or archive'),
        description: textOption('TEXT', 'what it is'),
        public: flag('give it a URL that answers', { conflicts: 'private' }),
        private: flag('no URL (the default, but for what a template says)'),
        ephemeral: flag('let "berth projects cleanup" remove it'),
        worker: flag('it answers no requests: no port, no URL, no health check'),
        env: repeatedOption('NAME=VALUE', 'variable for it, kept as its secret; may be given several times'),
        envFile: repeatedOption('FILE', 'file with such variables; may be given several times'),
        detach: flag('return at once, while it is brought up', { short: 'd' }),
        strict: flag(STRICT, { conflicts: 'detach' }),
      },
      help: `
The code comes from a directory, a template, a git repository or an archive; without any the project is blank.
Of a directory everything is sent but .git, node_modules, what git ignores, and .env files that git does not
track: --env-file sends the variables in them.

Phases and log go to stderr until the app is ready. Ctrl-C leaves the bring-up going. ${EXIT_CODES}

Examples:
  berth projects create . --public
  berth projects create --template bun-api --name shop
  berth projects create --git https://example.com/shop.git --env-file .env
`,
      async run(invocation) {
        const { createProject } = await import('../projects/create.ts')
        return createProject(invocation)
      },
    }),
    action({
      usage: 'get [PROJECT]',
      operations: ['projects.get'],
      description: 'show one project',
      access: 'api',
      async run({ args: [named], connect, print }) {
        const client = await connect()
        await print(await findProject(client, named), async (project, { out }) => {
          const shown = facts(out, projectFacts(project))
          if (project.init_phase !== 'awaiting_secrets') return shown
          const { missingVariablesText } = await import('../projects/report.ts')
          return `${shown}\n${await missingVariablesText(client, project)}`
        })
      },
    }),
    action({
      usage: 'init [PROJECT]',
      operations: ['projects.init'],
      description: 'bring its code up, or go on with that',
      access: 'api',
      options: {
        proceed: flag('go on without the variables that are missing'),
        detach: flag('return at once', { short: 'd' }),
      },
      help: `
Brings up the code that is in the project's directory, and goes on with a bring-up that waits for variables.
${EXIT_CODES}
`,
      async run({ session, args: [named], options: { proceed, detach, json }, connect, print }) {
        const client = await connect()
        const { id } = await findProject(client, named)
        const body = proceed ? { proceed } : {}
        const project = await client.call('projects.init', { params: { projectId: id }, body })
        if (detach)
          return print(project, () => `The bring-up goes on. Look at it with: berth projects logs ${id} -f\n`)
        const { followBringUp } = await import('../projects/follow.ts')
        return followBringUp(session, client, project, { json, since: project.updated_at })
      },
    }),
    action({
      usage: 'push [DIR]',
      operations: ['projects.push'],
      description: 'send what of a directory has changed, and restart the app if it has to be',
      access: 'api',
      options: {
        project: textOption(
          'PROJECT',
          'the project; by default the one that the directory was sent to before',
        ),
        directory: textOption(
          'PATH',
          'the directory of the app in the code, from now on; . is the code itself',
        ),
        watch: flag('stay, and send again after each change', { short: 'w' }),
        strict: flag(STRICT, { conflicts: 'watch' }),
        server: textOption('SERVER', 'for a new project: the server; needed where there are several'),
        name: textOption('TEXT', 'for a new project: its name; by default that of the directory'),
        private: flag('for a new project: no URL'),
      },
      help: `
Without DIR it is the directory that was sent last, of this one and those above it. A directory that was never sent
becomes a new project with a URL. Of a directory the same is sent as by "berth projects create": see there.

Only files whose content differs are sent. Those that were sent before and are gone are removed; what the app has
made stays. Packages are installed only if a lock file or a package file has changed. The app is restarted, unless
berth serves its files, or its command watches them. The old version answers until the new one does.

Examples:
  berth projects push
  berth projects push site --watch
  berth projects push . --project shop
`,
      async run(invocation) {
        const { pushProject } = await import('../projects/push.ts')
        return pushProject(invocation, findProject)
      },
    }),
    action({
      usage: 'restart [PROJECT]',
      operations: ['projects.restart'],
      description: 'start its app again, as it was built',
      access: 'api',
      options: { detach: flag('return at once', { short: 'd' }) },
      help: '\nThe old app answers until the new one does. Secrets that changed restart an app by themselves.\n',
      async run({ session, args: [named], options: { detach, json }, connect, print }) {
        const client = await connect()
        const { id, slug } = await findProject(client, named)
        const project = await showWhile(session.context.stderr, `restart ${slug}`, () =>
          client.call('projects.restart', { params: { projectId: id } }),
        )
        if (detach)
          return print(project, () => `It restarts. Look at it with: berth projects logs ${slug} -f\n`)
        const { followBringUp } = await import('../projects/follow.ts')
        return followBringUp(session, client, project, { json, since: project.updated_at })
      },
    }),
    call('projects.update', {
      usage: 'update [PROJECT]',
      description: 'change what it is called, whether it has a URL, whether it may be cleaned up',
      options: {
        name: textOption('TEXT', 'its name; slug and URL stay'),
        description: textOption('TEXT', 'what it is'),
        public: flag('give it a URL that answers', { conflicts: 'private' }),
        private: flag('take its URL down'),
        ephemeral: flag('let "cleanup" remove it', { conflicts: 'persistent' }),
        persistent: flag('let only "delete" remove it'),
      },
      async request([named], options, invocation) {
        const { name, description } = options
        const visibility = options.public ? 'public' : options.private ? 'private' : undefined
        const lifecycle = options.ephemeral ? 'ephemeral' : options.persistent ? 'persistent' : undefined
        const body = { name, description, visibility, lifecycle } as const
        if (Object.values(body).every((value) => value === undefined)) {
          throw new UsageError(
            'Say what to change: --name, --description, --public, --private, --ephemeral or --persistent.',
          )
        }
        return { ...(await projectParams(named, invocation)), body }
      },
      show: factSheet(projectFacts),
    }),
    call('projects.delete', {
      usage: 'delete [PROJECT]',
      description: 'end its app and remove it with its files',
      request: ([named], _, invocation) => projectParams(named, invocation),
      show: ({ id }) => `Deleted ${id}.\n`,
      async loss({ args: [named], connect }) {
        const { id, slug } = await findProject(await connect(), named)
        return `${id} (${printable(slug)}) is deleted with its files.`
      },
    }),
    call('projects.cleanup', {
      usage: 'cleanup [PROJECT]',
      description: 'remove an ephemeral project with its files',
      request: ([named], _, invocation) => projectParams(named, invocation),
      show: ({ id }) => `Cleaned up ${id}.\n`,
    }),
    action({
      usage: 'logs [PROJECT]',
      operations: ['projects.logs'],
      description: 'print what its bring-ups and its app printed',
      access: 'api',
      options: APP_LOG_OPTIONS,
      async run({ args: [named], options, connect, print }) {
        const client = await connect()
        const { id, slug, workers } = await findProject(client, named)
        checkWorker(slug, workers, options.worker)
        return showLog(print, projectLog(client, id), options)
      },
    }),
    action({
      usage: 'open [PROJECT]',
      description: 'open its URL in the browser',
      access: 'api',
      json: null,
      async run({ session: { context }, args: [named], connect }) {
        const project = await findProject(await connect(), named)
        const { id, slug, url, port_taken } = project
        if (isWorker(project)) throw new CommandError(`${slug} is a worker: it has no URL.`)
        if (url === null) {
          throw new CommandError(
            `${slug} is private: no URL leads to it. Give it one with: berth projects update ${id} --public`,
          )
        }
        if (port_taken) {
          throw new CommandError(
            `${url} leads to another program, which has the port of ${slug}. End it, and the project answers there; until then ${slug}.localhost on berth's own port leads to it.`,
          )
        }
        const { openInBrowser } = await import('../browser.ts')
        const isOpen = await openInBrowser(url, context)
        await context.stdout.write(isOpen ? `Opened ${url}\n` : `${url}\n`)
      },
    }),
  ],
}

async function listNamed(client: Client, signal?: AbortSignal): Promise<Named[]> {
  const { projects: all } = await client.call('projects.listAll', { signal })
  return all.map((project) => ({
    id: project.id,
    ...nameable(project),
    description: `${projectStatus(project)}, ${project.name}`,
    place: { serverId: project.server_id, directory: `projects/${project.slug}` },
  }))
}
