import { resolve } from 'node:path'
import type { ResponseOf } from '../../client/client.ts'
import { UsageError } from '../../errors.ts'
import type { Client } from '../client.ts'
import type { DirectoryUpload } from '../directory/upload-changes.ts'
import { CommandError } from '../errors.ts'
import { POLL_INTERVAL_MS } from '../follow.ts'
import { despiteInterrupt } from '../interrupt.ts'
import { deploymentLog, followLog } from '../log.ts'
import { flag, text } from '../options.ts'
import { count, formatDuration, printable, printResult } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { action } from '../runner.ts'
import { serverOrNew } from '../server-or-new.ts'
import { StatusLine } from '../status-line.ts'

/** `berth deploy` */
export const deploy = action({
  usage: 'deploy [DIR]',
  operations: ['deployments.create'],
  summary: "publish a server's workspace under a URL",
  description: "Publishes a server's workspace under a URL, with the files of a directory of yours.",
  access: 'api',
  options: {
    server: text('SERVER', 'the server; needed where there are several'),
    watch: flag('stay, and publish DIR again after each change', { short: 'w' }),
    clean: flag('remove what is in the workspace and not in DIR; the directories of projects stay'),
  },
  help: `
Without DIR the workspace is published as it is: an app where one is found, else its files. With DIR the
directory's files are written into it first, but for .git, node_modules, what .gitignore files name, and .env
files: "berth secrets import .env" sets the variables in them. Publishing again keeps the URL.

Examples:
  berth deploy .
  berth deploy dist --clean
  berth deploy site --watch
`,
  async run({ session, args: [directory], options, connect, server, print }) {
    if (directory === undefined && (options.clean || options.watch)) {
      throw new UsageError(
        options.clean
          ? '--clean removes what DIR does not have: name the directory.'
          : '--watch publishes DIR again after each change: name the directory.',
      )
    }
    const client = await connect()
    const serverId = await serverOrNew(client, session.context, options, server)
    if (directory === undefined)
      return print(
        await publish(session.context, client, serverId, options.json),
        ({ url }) => `Published ${serverId} at ${url}\n`,
      )
    const { DirectoryUpload } = await import('../directory/upload-changes.ts')
    const upload = new DirectoryUpload(session.context, client, serverId, directory)
    if (options.watch) return deployOnChange(session.context, client, serverId, upload, options)
    const files = await upload.sendAll(options.clean ?? false, await isPublished(client, serverId))
    const tell = () => void session.context.stderr.write(interruptedText(upload.canPutBack))
    const published = await despiteInterrupt(tell, () =>
      publishUpload(session.context, client, serverId, upload, options.json),
    )
    const hint = await projectHint(session.context, client, directory)
    return print({ ...published, files }, ({ url }) => `Published ${serverId} at ${url}\n${hint}`)
  },
})

/** Returns what Ctrl-C says during a publication, which the server does not give up. */
const interruptedText = (canPutBack: boolean): string =>
  canPutBack
    ? '\nThe publication goes on. If it fails, the files of the version before are put back. Ctrl-C again ends this now, and leaves the new files on the server.\n'
    : '\nThe publication goes on. Ctrl-C again ends this now.\n'

/** Says that a directory is a project too, which stays as it is; empty for one that is not. */
async function projectHint(context: ProcessContext, client: Client, directory: string): Promise<string> {
  const { SENT_PROJECTS } = await import('../directory-choices.ts')
  const cwd = resolve(context.cwd, directory)
  const sent = SENT_PROJECTS.find({ ...context, cwd }, client.baseUrl)
  if (sent?.directory !== cwd) return ''
  const { projects } = await client.call('projects.listAll')
  const project = projects.find(({ id }) => id === sent.id)
  if (project === undefined) return ''
  return `Its project ${printable(project.slug)} stays as it is: "berth projects push" sends the directory there.\n`
}

type Published = ResponseOf<'deployments.create'>

/** Publishes the workspace of a server. Throws CommandError that also says where the log is. */
async function publish(
  { stderr }: ProcessContext,
  client: Client,
  serverId: string,
  json: boolean | undefined,
): Promise<Published> {
  using status = new StatusLine(stderr)
  const done = new AbortController()
  let last = ''
  if (stderr.isTTY && !json) {
    status.show('', (elapsed) => `publishing … ${elapsed}${last}`)
    const latest = async (): Promise<void> => {
      // A server that publishes nothing yet has no log to follow.
      for (; !done.signal.aborted; await Bun.sleep(POLL_INTERVAL_MS)) {
        for await (const line of followLog(deploymentLog(client, serverId), { since: '1s' }, done.signal))
          last = `  ${printable(Bun.stripANSI(line.text))}`
      }
    }
    // Only for show: the publication itself tells of failures.
    latest().catch(() => {})
  }
  try {
    return await client.call('deployments.create', { params: { serverId } })
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== 'compute_backend_error') throw error
    const hint = `The whole log: berth deployments logs ${serverId}`
    throw new CommandError(`${error.message}\n${hint}`, error.exitCode, error.code)
  } finally {
    done.abort()
  }
}

const isPublished = async (client: Client, serverId: string): Promise<boolean> =>
  (await client.call('deployments.list', { params: { serverId } })).deployments.length > 0

/** Publishes what was uploaded. If it does not come up, puts the files of the version before back and publishes them. */
async function publishUpload(
  context: ProcessContext,
  client: Client,
  serverId: string,
  upload: DirectoryUpload,
  json: boolean | undefined,
): Promise<Published> {
  try {
    return await publish(context, client, serverId, json)
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== 'compute_backend_error') throw error
    if (!(await isPublished(client, serverId))) throw error
    const say = (outcome: string): CommandError =>
      new CommandError(`${error.message}\n${outcome}`, error.exitCode, error.code)
    if (!upload.canPutBack) {
      throw say(
        'The version before goes on, but the workspace has the new files: those before are more than 128 MiB, or the server has no "tar". Mend them before it is restarted.',
      )
    }
    try {
      await upload.putBack()
      // Installs and builds what the new version has changed.
      await publish(context, client, serverId, json)
    } catch (failure) {
      if (!(failure instanceof CommandError)) throw failure
      throw say(`The version before could not be put back: ${failure.message}`)
    }
    throw say('The version before goes on, with its files.')
  }
}

/** Publishes a directory, and again after each change, until Ctrl-C. A failure is told, and the next change tries again. */
async function deployOnChange(
  context: ProcessContext,
  client: Client,
  serverId: string,
  upload: DirectoryUpload,
  { clean = false, json }: { clean?: boolean | undefined; json?: boolean },
): Promise<number> {
  const { stdout, stderr } = context
  const { repeatOnChange } = await import('../directory/repeat.ts')
  let isFirst = true
  let isSent = false
  return repeatOnChange(upload.directory, upload.isLeftOut, async () => {
    const began = performance.now()
    try {
      const { sent, removed } = isSent
        ? await upload.sendChanges()
        : { sent: await upload.sendAll(clean, await isPublished(client, serverId)), removed: 0 }
      if (isSent && sent + removed === 0) return
      isSent = true
      const published = await publishUpload(context, client, serverId, upload, json)
      const took_ms = Math.round(performance.now() - began)
      await printResult(stdout, json, { ...published, files: sent, removed, took_ms }, () => {
        const gone = removed > 0 ? `, ${removed} removed` : ''
        return `${count(sent, 'file')} sent${gone}, live in ${formatDuration(took_ms)} at ${published.url}\n`
      })
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      await stderr.write(`berth: ${error.message}\n`)
    }
    if (isFirst) await stderr.write(`Watching ${printable(upload.directory)}. Ctrl-C ends it.\n`)
    isFirst = false
  })
}
