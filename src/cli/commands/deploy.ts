import { resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import type { PublishedDeployment } from '../../resources/deployments/model.ts'
import type { Client } from '../client.ts'
import { action } from '../command.ts'
import type { DirectoryDeployment, DirectoryPublication } from '../directory/deploy.ts'
import { interruptedText, type SendProgress, type SendStage } from '../directory/outgoing.ts'
import { sentText, sizeText } from '../directory/report.ts'
import { CommandError } from '../errors.ts'
import { followWork, POLL_INTERVAL_MS } from '../follow.ts'
import { deploymentLog, followLog } from '../log.ts'
import { flag, textOption } from '../options.ts'
import { count, formatBytes, formatDuration, printable, printResult, timeOfDay } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { reportWarnings, STRICT } from '../projects/report.ts'
import { serverName, serverOrNew } from '../server-or-new.ts'
import { StatusLine } from '../status-line.ts'

/** `berth deploy` */
export const deploy = action({
  usage: 'deploy [DIR]',
  operations: ['deployments.create', 'deployments.push'],
  summary: "publish a server's workspace under a URL",
  description: "Publishes a server's workspace under a URL, with the files of a directory of yours.",
  access: 'api',
  options: {
    server: textOption('SERVER', 'the server; needed where there are several'),
    directory: textOption('PATH', 'the directory of the app in the workspace; by default berth finds it'),
    watch: flag('stay, and publish DIR again after each change', { short: 'w' }),
    strict: flag(STRICT, { conflicts: 'watch' }),
    clean: flag('remove what is in the workspace and not in DIR; the directories of projects stay'),
  },
  help: `
Without DIR the workspace is published as it is: an app where one is found, else its files. With DIR the
directory's files are written into it first, but for .git, node_modules, what git ignores, and .env files that
git does not track: "berth secrets import .env" sets the variables in them. Publishing again keeps the URL.

Examples:
  berth deploy .
  berth deploy dist --clean
  berth deploy site --watch
`,
  async run({ session, args: [directory], options, connect, reconnect, server, print }) {
    if (directory === undefined && (options.clean || options.watch)) {
      throw new UsageError(
        options.clean
          ? '--clean removes what DIR does not have: name the directory.'
          : '--watch publishes DIR again after each change: name the directory.',
      )
    }
    if (directory !== undefined) {
      const { checkReadableDirectory } = await import('../directory/survey.ts')
      await checkReadableDirectory(resolve(session.context.cwd, directory))
    }
    const client = await connect()
    const serverId = await serverOrNew(client, session.context, options, server)
    const { context } = session
    const { json = false, clean = false, strict } = options
    const warnOf = ({ warnings }: PublishedDeployment): Promise<number> =>
      reportWarnings(context.stderr, warnings, { isShown: false, strict })
    const publishedText = async ({ url, app }: PublishedDeployment): Promise<string> =>
      `Published ${await serverName(client, serverId)} at ${url}${app === undefined ? '' : ` (${app.kind})`}\n`
    const interrupted = (stage: SendStage): string =>
      interruptedText(stage, 'the publication', `berth deployments logs ${serverId} -f`)
    if (directory === undefined) {
      return followWork(context.stderr, interrupted('bring-up'), async (signal) => {
        const published = await publishing(context, client, serverId, json, () =>
          client.call('deployments.create', {
            params: { serverId },
            ...(options.directory !== undefined && { body: { directory: options.directory } }),
            signal,
          }),
        )
        await print(published, publishedText)
        return warnOf(published)
      })
    }
    const { DirectoryDeployment } = await import('../directory/deploy.ts')
    const deployment = new DirectoryDeployment(context, serverId, directory, options.directory)
    if (options.watch) {
      const connection = { client, reconnect }
      const code = await deployOnChange(context, connection, serverId, deployment, { clean, json })
      const said = interrupted(deployment.directory.stage)
      if (code > 128 && said !== '') await context.stderr.write(`\nberth: ${said}`)
      return code
    }
    return followWork(
      context.stderr,
      () => interrupted(deployment.directory.stage),
      async (signal) => {
        const options = { clean, json, signal }
        const publication = await publishDirectory(context, client, serverId, deployment, options)
        if (publication === null) throw new Error('A first publication is of something.')
        const { published, survey, sent, removed } = publication
        const files = survey.files.length + survey.links.length
        if (removed > 0)
          await context.stderr.write(
            `Removed ${count(removed, 'other file')} from ${await serverName(client, serverId)}.\n`,
          )
        const kept = files - sent.length
        const rest = kept === 0 ? '' : `; ${kept} of them unchanged`
        await context.stderr.write(
          `Uploaded ${printable(directory)}: ${sizeText(survey)}${rest}.\n${deployment.notes}`,
        )
        const hint = await projectHint(context, client, directory)
        await print({ ...published, files }, async (shown) => `${await publishedText(shown)}${hint}`)
        return warnOf(published)
      },
    )
  },
})

/** Says that a directory is a project too, which stays as it is; empty for one that is not. */
async function projectHint(context: ProcessContext, client: Client, directory: string): Promise<string> {
  const { SENT_PROJECTS } = await import('../directory-choices.ts')
  const cwd = resolve(context.cwd, directory)
  const find = (isThere: (id: string) => boolean) =>
    SENT_PROJECTS.find({ ...context, cwd }, client.baseUrl, isThere)
  if (find(() => true)?.directory !== cwd) return ''
  const { projects } = await client.call('projects.listAll')
  const sent = find((given) => projects.some(({ id }) => id === given))
  if (sent?.directory !== cwd) return ''
  const project = projects.find(({ id }) => id === sent.id)
  if (project === undefined) return ''
  return `Its project ${printable(project.slug)} stays as it is: "berth projects push" sends the directory there.\n`
}

/**
 * Shows how far a publication is while it runs.
 *
 * @param run gets a function to be called with how far files have been sent
 * @throws CommandError that also says where the log is
 */
async function publishing<Result>(
  { stderr }: ProcessContext,
  client: Client,
  serverId: string,
  json: boolean,
  run: (onProgress: (progress: SendProgress) => void) => Promise<Result>,
): Promise<Result> {
  using status = new StatusLine(stderr)
  const done = new AbortController()
  let last = ''
  const latest = async (): Promise<void> => {
    // A server that publishes nothing yet has no log to follow.
    for (; !done.signal.aborted; await Bun.sleep(POLL_INTERVAL_MS)) {
      for await (const line of followLog(deploymentLog(client, serverId), { since: '1s' }, done.signal))
        last = `  ${printable(Bun.stripANSI(line.text))}`
    }
  }
  let isFollowed = false
  const show = ({ files, sent, bytes, isLast }: SendProgress): void => {
    if (!stderr.isTTY || json) return
    status.show('', (elapsed) =>
      isLast
        ? `publishing … ${elapsed}${last}`
        : `sending ${count(files, 'file')}, ${formatBytes(sent)} of ${formatBytes(bytes)} … ${elapsed}`,
    )
    // Only for show: the publication itself reports failures.
    if (isLast && !isFollowed) latest().catch(() => {})
    isFollowed ||= isLast
  }
  try {
    show({ files: 0, sent: 0, bytes: 0, isLast: true })
    return await run(show)
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== 'compute_backend_error') throw error
    const hint = `The whole log: berth deployments logs ${serverId}`
    throw new CommandError(`${error.message}\n${hint}`, error.exitCode, error.code)
  } finally {
    done.abort()
  }
}

/** The options of the publication of a directory. */
interface DirectoryOptions {
  clean: boolean
  json: boolean
  signal: AbortSignal
}

/** Sends and publishes a directory. Returns null if nothing has changed since the last call. */
async function publishDirectory(
  context: ProcessContext,
  client: Client,
  serverId: string,
  deployment: DirectoryDeployment,
  { clean, json, signal }: DirectoryOptions,
): Promise<DirectoryPublication | null> {
  try {
    return await publishing(context, client, serverId, json, (onProgress) =>
      deployment.publish(client, clean, onProgress, signal),
    )
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    if (error.code === 'compute_backend_error') await context.stderr.write(deployment.notes)
    if (error.code !== 'bad_request') throw error
    throw new CommandError(
      `${printable(deployment.given)} was not sent, and nothing published: ${error.message}`,
      error.exitCode,
      error.code,
    )
  }
}

/** Publishes a directory, and again after each change, until Ctrl-C. Returns the exit code. */
async function deployOnChange(
  context: ProcessContext,
  connection: { client: Client; reconnect: () => Promise<Client> },
  serverId: string,
  deployment: DirectoryDeployment,
  { clean, json }: Pick<DirectoryOptions, 'clean' | 'json'>,
): Promise<number> {
  const { stdout, stderr } = context
  const { sendOnChange } = await import('../directory/watch.ts')
  return sendOnChange({
    ...connection,
    directory: deployment.directory.path,
    isLeftOut: deployment.directory.isLeftOut,
    target: { type: 'server', id: serverId },
    stderr,
    async send(client, signal, isFirst) {
      const began = performance.now()
      const options = { clean: clean && isFirst, json, signal }
      const publication = await publishDirectory(context, client, serverId, deployment, options)
      if (publication === null) return
      const { published, sent, removed } = publication
      if (isFirst) await stderr.write(deployment.notes)
      const took_ms = Math.round(performance.now() - began)
      await printResult(stdout, json, { ...published, files: sent.length, removed, took_ms }, () => {
        const parts = [sentText(sent), removed > 0 ? `${removed} removed` : ''].filter(Boolean)
        const what = parts.length === 0 ? 'Nothing has changed' : parts.join(', ')
        return `${timeOfDay()}  ${what}, live in ${formatDuration(took_ms)} at ${published.url}\n`
      })
      await reportWarnings(stderr, published.warnings, { isShown: false })
    },
  })
}
