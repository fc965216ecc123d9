import type { Project } from '../../resources/projects/model.ts'
import type { ResponseOf } from '../../route-client/client.ts'
import type { Client } from '../client.ts'
import { repeatOnChange } from '../directory/watch.ts'
import { CommandError } from '../errors.ts'
import { DEFAULT_TAIL, followLog, type LogLine, logText, projectLog } from '../log.ts'
import { formatDuration, paint, printable, type Style } from '../output.ts'
import { toPlainText } from '../plain-text.ts'
import type { OutputStream } from '../process-context.ts'
import { rememberProject } from '../projects/create.ts'
import { AWAITS_SECRETS, watchBringUp } from '../projects/follow.ts'
import { Pusher } from '../projects/pusher.ts'
import { isWorker, missingVariablesText, projectAddresses, reportWarnings } from '../projects/report.ts'
import { takenChange } from '../projects/watched-app.ts'
import type { CliSession } from '../session.ts'
import { StatusLine } from '../status-line.ts'
import type { ProjectFile } from './berth-yaml.ts'

/** Something that a file has made, as the instance lists it. */
export type Made = ResponseOf<'control.fixtures.list'>['fixtures'][number]

/** A project of the file on the instance. */
interface UpProject {
  readonly name: string
  readonly id: string
  /** Of its code; null for code from elsewhere. */
  readonly directory: string | null
  /** Writes to stderr and stdout with the project's name before each line. */
  readonly session: CliSession
  readonly pusher: Pusher | null
}

/** The projects of a file, from their bring-up on. */
export class UpProjects {
  readonly #session: CliSession
  readonly #client: Client
  readonly #projects: readonly UpProject[]
  /** The number of the last line of each project's log that has been read, by the project's id. */
  readonly #read = new Map<string, number>()
  readonly #status: StatusLine
  readonly #strict: true | undefined

  constructor(session: CliSession, client: Client, file: ProjectFile, made: readonly Made[], strict?: true) {
    this.#session = session
    this.#strict = strict
    this.#client = client
    this.#status = new StatusLine(session.context.stderr)
    const stdout = this.#status.above(session.context.stdout)
    const stderr = this.#status.above(session.context.stderr)
    const width = Math.max(0, ...[...file.projects.keys()].map((name) => name.length))
    this.#projects = [...file.projects].flatMap(([name, { directory, appDirectory }], index) => {
      const id = made.find((one) => one.kind === 'project' && one.name === name)?.id
      if (id === undefined) return []
      const own = {
        ...session,
        context: {
          ...session.context,
          stdout: prefixed(stdout, name, width, index),
          stderr: prefixed(stderr, name, width, index),
        },
      }
      const pusher =
        directory === null
          ? null
          : new Pusher(own, directory, id, {
              ...{ isQuiet: false, status: this.#status, label: name },
              ...(appDirectory === undefined ? {} : { appDirectory }),
            })
      return [{ name, id, directory, session: own, pusher }]
    })
  }

  /**
   * Sends the directories, waits until every project is up or has failed, and prints what has become of each.
   *
   * @returns 0 if all are up, 1 if one has failed, AWAITS_SECRETS if one waits for variables
   */
  async bringUp(signal: AbortSignal): Promise<number> {
    using _ = this.#status
    const outcomes = await Promise.all(this.#projects.map((project) => this.#bringUpOne(project, signal)))
    return outcomes.includes(1) ? 1 : Math.max(0, ...outcomes)
  }

  /**
   * Prints what the apps print, until the signal aborts.
   *
   * @param isWatching sends a directory again after each change
   */
  async follow(isWatching: boolean, signal: AbortSignal): Promise<void> {
    const work = this.#projects.flatMap((project) => [
      this.#followOne(project, signal),
      ...(isWatching ? [this.#watchOne(project)] : []),
    ])
    const ended = new Promise<void>((resolve) =>
      signal.addEventListener('abort', () => resolve(), { once: true }),
    )
    await Promise.all([ended, ...work])
  }

  async #bringUpOne(
    { name, id, directory, session, pusher }: UpProject,
    signal: AbortSignal,
  ): Promise<number> {
    const { stderr } = session.context
    try {
      // "berth projects push" in the directory then means this project.
      if (directory !== null) await rememberProject(session.context, directory, this.#client, id)
      const project = await this.#client.call('projects.get', { params: { projectId: id }, signal })
      const [last] = (await projectLog(this.#client, id).read({ tail: 1 })).logs
      this.#read.set(id, last?.seq ?? -1)
      const { final, isShown } = await this.#reachFinal(name, project, pusher, session, signal)
      return await this.#tell(name, final, session, isShown)
    } catch (error) {
      if (signal.aborted || !(error instanceof CommandError)) throw error
      await stderr.write(`${paint(stderr, 'red', toPlainText(error.message))}\n`)
      return 1
    }
  }

  /**
   * Sends the directory of a project, or waits for its bring-up; one that is ready is left alone.
   *
   * @returns the project, and whether the log of a bring-up was shown
   */
  async #reachFinal(
    name: string,
    project: Project,
    pusher: Pusher | null,
    session: CliSession,
    signal: AbortSignal,
  ): Promise<{ final: Project; isShown: boolean }> {
    const onLine = ({ seq = -1 }: LogLine): void => {
      this.#read.set(project.id, Math.max(seq, this.#read.get(project.id) ?? -1))
    }
    if (pusher) {
      const { project: final, response } = await pusher.push(this.#client, signal, onLine)
      return { final, isShown: response.began !== null }
    }
    if (project.init_phase === 'ready') return { final: project, isShown: false }
    const shown = { status: this.#status, label: name }
    const options = { since: null, signal, onLine, ...shown }
    return { final: await watchBringUp(session, this.#client, project, options), isShown: true }
  }

  /**
   * Prints what has become of a project.
   *
   * @param isShown whether the log of its bring-up was shown
   * @returns its exit code
   */
  async #tell(
    name: string,
    project: Project,
    { context: { stderr } }: CliSession,
    isShown: boolean,
  ): Promise<number> {
    const stdout = this.#status.above(this.#session.context.stdout)
    const { slug, url, init_phase: phase, server_id } = project
    if (phase === 'failed') {
      const before =
        project.runtime_status === 'running' ? ' The version before goes on, with its files.' : ''
      await stderr.write(
        `${paint(stderr, 'red', 'It did not come up.')}${before} The whole log: berth projects logs ${slug}\n`,
      )
      return 1
    }
    if (phase === 'awaiting_secrets') {
      await stderr.write(await missingVariablesText(this.#client, project))
      return AWAITS_SECRETS
    }
    const where = isWorker(project)
      ? `a worker on ${server_id}`
      : url === null
        ? `on ${server_id}, without a URL ("visibility: public" gives it one)`
        : projectAddresses(this.#client, project)
    await stdout.write(`${printable(name)} is up: ${where}\n`)
    return reportWarnings(stderr, project.warnings, { isShown, strict: this.#strict })
  }

  async #followOne({ id, session }: UpProject, signal: AbortSignal): Promise<void> {
    const { stdout } = session.context
    const log = projectLog(this.#client, id)
    // What was printed since the bring-up was shown.
    const read = this.#read.get(id) ?? -1
    try {
      for await (const line of followLog(log, { tail: DEFAULT_TAIL }, signal))
        if (line.seq === undefined || line.seq > read) await stdout.write(logText(stdout, line))
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  async #watchOne({ name, id, directory, session }: UpProject): Promise<void> {
    if (directory === null) return
    // What the bring-up prints is followed already.
    const pusher = new Pusher(session, directory, id, { isQuiet: true })
    const { stdout, stderr } = session.context
    const run = async (signal: AbortSignal): Promise<void> => {
      try {
        const { response, project, tookMs, isBack } = await pusher.push(this.#client, signal)
        if (isBack) await stdout.write('Back at the version that runs.\n')
        if (response.written + response.removed === 0 && response.began === null) return
        const taken = response.began === null ? await takenChange(project, signal) : null
        if (taken) await (taken.isUp ? stdout : stderr).write(`${taken.text}\n`)
        else if (project.init_phase === 'ready') await stdout.write(`Live after ${formatDuration(tookMs)}.\n`)
        else await this.#tell(name, project, session, false)
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
        await stderr.write(`${paint(stderr, 'red', toPlainText(error.message))}\n`)
      }
    }
    await repeatOnChange({ directory, isLeftOut: pusher.directory.isLeftOut, run })
  }
}

/** Colours that distinguish the lines of projects. */
const STYLES: readonly Style[] = ['cyan', 'yellow', 'green', 'red']

/**
 * Returns a stream that writes whole lines with a name before them, so that several can write to the same output.
 *
 * @param index of the name among those that are shown, for its colour
 */
function prefixed(out: OutputStream, name: string, width: number, index: number): OutputStream {
  const style = STYLES[index % STYLES.length] ?? 'cyan'
  const prefix = `${paint(out, style, `${name.padEnd(width)} |`)} `
  const decoder = new TextDecoder()
  let rest = ''
  return {
    write(data) {
      const text = rest + (typeof data === 'string' ? data : decoder.decode(data, { stream: true }))
      const end = text.lastIndexOf('\n') + 1
      rest = text.slice(end)
      if (end === 0) return Promise.resolve()
      return out.write(text.slice(0, end).replaceAll(/^(?=.|\n)/gm, prefix))
    },
    get isTTY() {
      return out.isTTY
    },
    get columns() {
      return out.columns === undefined ? undefined : out.columns - width - 3
    },
    get hasColors() {
      return out.hasColors
    },
  }
}
