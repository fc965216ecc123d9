import { type Command, InvalidArgumentError, Option } from 'commander'
import { UsageError } from '../../errors.ts'
import type { Project, ProjectUpdate } from '../../resources/projects/model.ts'
import { CommandError } from '../errors.ts'
import type { ConnectionOptions } from '../instance.ts'
import { facts, table } from '../output.ts'
import { path } from '../path.ts'
import type { CreateOptions } from '../projects/create.ts'
import { findProject } from '../projects/find.ts'
import { PROJECT_COLUMNS, projectDetails } from '../projects/show.ts'
import { connect, printJson, type Session, withConnection, withJson } from '../session.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  server?: string
  proceed?: boolean
  follow?: boolean
  tail?: number
}

interface UpdateOptions extends Options {
  name?: string
  description?: string
  public?: boolean
  private?: boolean
  ephemeral?: boolean
  persistent?: boolean
}

/** Lines of a log that are shown where nothing else is said, as by the API. */
const TAIL = 200

const MORE_CREATE = `
The code comes from a folder, a template, a git repository or an archive; without any the project is blank.
Of a folder everything is sent but .git, node_modules, what .gitignore files name, and .env files: --env-file
sends the variables in them.

Phases and log go to stderr until the app is ready. Ctrl-C leaves the bring-up going. The exit code is 0 when
the app is ready, 1 where it failed, 3 where it waits for variables.

Examples:
  berth projects create . --public
  berth projects create --template bun-api --name shop
  berth projects create --git https://example.com/shop.git --env-file .env
`

const MORE_INIT = `
Brings up the code that is in the project's folder, and goes on with a bring-up that waits for variables.
The exit code is 0 when the app is ready, 1 where it failed, 3 where it waits for variables.
`

/** Adds `projects` and what can be done with them. */
export function registerProjects(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const projects = program
    .command('projects')
    .helpCommand(false)
    .summary('create and manage projects: apps with a URL')
    .description(
      'Creates and manages projects: apps on a server, each with a URL of its own. Plain "berth projects" lists them. A project is named by its id, its slug or its name.',
    )
  const add = (usage: string, description: string) =>
    withConnection(withJson(projects.command(usage).description(description)))

  add('list', 'list all projects, newest first')
    .option('--server <SERVER>', 'those of one server only')
    .action(async (options: Options) => {
      const client = await connect(session, options)
      const { server } = options
      const answer = await client.request<{ projects: Project[] }>(
        'GET',
        server === undefined ? '/projects' : path`/servers/${server}/projects`,
      )
      if (options.json) return printJson(session, answer)
      if (answer.projects.length === 0)
        return stdout.write('No projects yet. Make one with "berth projects create".\n')
      await stdout.write(table(stdout, PROJECT_COLUMNS, answer.projects))
    })

  withSource(add('create [DIR]', 'make a project and bring its code up'))
    .option('--server <SERVER>', 'the server it is for; needed where there are several')
    .option('--name <TEXT>', 'by default that of the folder, repository or archive')
    .option('--description <TEXT>', 'what it is')
    .addOption(new Option('--public', 'give it a URL that answers').conflicts('private'))
    .option('--private', 'no URL (the default, but for what a template says)')
    .option('--ephemeral', 'let "berth projects cleanup" remove it')
    .option('--env <NAME=VALUE>', 'variable for it, kept as its secret; may be given several times', collect)
    .option('--env-file <FILE>', 'file with such variables; may be given several times', collect)
    .option('-d, --detach', 'return at once, while it is brought up')
    .addHelpText('after', MORE_CREATE)
    .action(async (folder: string | undefined, options: CreateOptions) => {
      const { createProject } = await import('../projects/create.ts')
      session.exitCode = await createProject(session, folder, options)
    })

  add('get <PROJECT>', 'show one project').action(async (named: string, options: Options) => {
    const client = await connect(session, options)
    const project = await findProject(client, named)
    if (options.json) return printJson(session, project)
    await stdout.write(facts(stdout, projectDetails(project)))
    if (project.init_phase !== 'awaiting_secrets') return
    const { waitingText } = await import('../projects/missing.ts')
    await stdout.write(`\n${await waitingText(client, project)}`)
  })

  add('init <PROJECT>', 'bring its code up, or go on with that')
    .option('--proceed', 'go on without the variables that are missing')
    .option('-d, --detach', 'return at once')
    .addHelpText('after', MORE_INIT)
    .action(async (named: string, options: Options & { detach?: boolean }) => {
      const client = await connect(session, options)
      const { id } = await findProject(client, named)
      const body = options.proceed ? { proceed: true } : {}
      const project = await client.request<Project>('POST', path`/projects/${id}/init`, { body })
      if (options.detach && options.json) return printJson(session, project)
      if (options.detach)
        return stdout.write(`The bring-up goes on. Look at it with: berth projects logs ${id} -f\n`)
      const { followBringUp } = await import('../projects/follow.ts')
      const { json } = options
      session.exitCode = await followBringUp(session, client, project, { json, since: project.updated_at })
    })

  add('update <PROJECT>', 'change what it is called, whether it has a URL, whether it may be cleaned up')
    .option('--name <TEXT>', 'its name; slug and URL stay')
    .option('--description <TEXT>', 'what it is')
    .addOption(new Option('--public', 'give it a URL that answers').conflicts('private'))
    .option('--private', 'take its URL down')
    .addOption(new Option('--ephemeral', 'let "cleanup" remove it').conflicts('persistent'))
    .option('--persistent', 'let only "delete" remove it')
    .action(async (named: string, options: UpdateOptions) => {
      const body = changesOf(options)
      const client = await connect(session, options)
      const { id } = await findProject(client, named)
      const project = await client.request<Project>('PATCH', path`/projects/${id}`, { body })
      if (options.json) return printJson(session, project)
      await stdout.write(facts(stdout, projectDetails(project)))
    })

  add('delete <PROJECT>', 'end its app and remove it with its files')
    .alias('rm')
    .action(async (named: string, options: Options) => {
      const client = await connect(session, options)
      const { id } = await findProject(client, named)
      const answer = await client.request<{ id: string }>('DELETE', path`/projects/${id}`)
      if (options.json) return printJson(session, answer)
      await stdout.write(`Deleted ${answer.id}.\n`)
    })

  add('cleanup <PROJECT>', 'remove an ephemeral project with its files').action(
    async (named: string, options: Options) => {
      const client = await connect(session, options)
      const { id } = await findProject(client, named)
      const answer = await client.request<{ id: string }>('POST', path`/projects/${id}/cleanup`)
      if (options.json) return printJson(session, answer)
      await stdout.write(`Cleaned up ${answer.id}.\n`)
    },
  )

  add('logs <PROJECT>', 'print what its bring-ups and its app printed')
    .option('-f, --follow', 'go on with what comes, until Ctrl-C; with --json one line each')
    .option('--tail <N>', `only the last lines of what is there (default ${TAIL})`, wholeNumber)
    .action(async (named: string, options: Options) => {
      const client = await connect(session, options)
      const { id } = await findProject(client, named)
      const { showLog } = await import('../log.ts')
      const log = path`/projects/${id}/logs`
      session.exitCode = await showLog(session, client, log, { tail: TAIL, ...options })
    })

  withConnection(projects.command('open <PROJECT>').description('open its URL in the browser')).action(
    async (named: string, options: Options) => {
      const client = await connect(session, options)
      const { id, slug, url } = await findProject(client, named)
      if (url === null) {
        throw new CommandError(
          `${slug} is private: no URL leads to it. Give it one with: berth projects update ${id} --public`,
        )
      }
      const { openInBrowser } = await import('../browser.ts')
      const isOpen = await openInBrowser(url, session.terminal)
      await stdout.write(isOpen ? `Opened ${url}\n` : `${url}\n`)
    },
  )
}

const withSource = (command: Command): Command =>
  command
    .option('--from <DIR>', 'the same as DIR: the folder that the code is in')
    .option('--template <TEMPLATE>', 'start from a template; "berth templates" lists them')
    .option('--git <URL>', 'take the code from a git repository')
    .option('--ref <REF>', 'its branch, tag or commit')
    .option('--archive <FILE>', 'take the code from a zip, tar or tar.gz, by its file or its URL')

const collect = (value: string, given: string[] = []): string[] => [...given, value]

function wholeNumber(given: string): number {
  if (/^\d{1,5}$/.test(given)) return Number(given)
  throw new InvalidArgumentError('Expected a whole number of lines.')
}

function changesOf(options: UpdateOptions): ProjectUpdate {
  const { name, description } = options
  const changes: ProjectUpdate = {
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    ...(options.public ? { visibility: 'public' } : {}),
    ...(options.private ? { visibility: 'private' } : {}),
    ...(options.ephemeral ? { lifecycle: 'ephemeral' } : {}),
    ...(options.persistent ? { lifecycle: 'persistent' } : {}),
  }
  if (Object.keys(changes).length > 0) return changes
  throw new UsageError(
    'Say what to change: --name, --description, --public, --private, --ephemeral or --persistent.',
  )
}
