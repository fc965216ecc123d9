import type { Project } from '../../resources/projects/model.ts'
import type { Client } from '../client.ts'
import { POLL_INTERVAL_MS } from '../follow.ts'
import { logText, projectLog } from '../log.ts'
import { printable } from '../output.ts'
import type { OutputStream } from '../process-context.ts'

/** Milliseconds that an app gets to notice a change: watchers wait for the last of several. */
const WATCH_MS = 500

/** Milliseconds after which an app that does not respond is taken for broken. */
const PATIENCE_MS = 5_000

/** Seconds of a log that explain a current failure. */
const RECENT_S = 10

/** How an app that takes changes of its files by itself has taken one. */
interface TakenChange {
  /** Whether it responds as it should; true if it cannot be asked. */
  readonly isUp: boolean
  /** The status of its health page; null if it is private or does not respond. */
  readonly status: number | null
  /** For a person: a sentence. */
  readonly text: string
}

/**
 * Finds out how an app that runs has taken a change of its files that led to no bring-up.
 *
 * @returns null if berth serves the files, which takes effect at once
 */
export async function takenChange(project: Project, signal: AbortSignal): Promise<TakenChange | null> {
  const { app, slug, url } = project
  if (!app?.start) return null
  const itself = `The app takes changes itself (${printable(app.start)})`
  const logs = `berth projects logs ${slug}`
  if (url === null) return { isUp: true, status: null, text: `${itself}: "${logs}" shows whether it could.` }
  const status = await statusOf(project, signal)
  const answer = status === null ? 'does not answer' : `answers ${status}`
  const isUp = status !== null && status < 500
  return { isUp, status, text: `${itself}, and ${answer} since.${isUp ? '' : ` The whole log: ${logs}`}` }
}

/**
 * Asks an app for its health page, some time after its files have changed. berth does not restart such an app, so only
 * its responses show whether it could take the change.
 *
 * @returns the status of its response, the last one if it is 500 or more; null if it has no URL or does not respond
 */
async function statusOf({ url, app }: Project, signal: AbortSignal): Promise<number | null> {
  if (url === null) return null
  const page = new URL(app?.health ?? '/', url)
  const began = performance.now()
  await Bun.sleep(WATCH_MS)
  for (;;) {
    const timeout = AbortSignal.timeout(PATIENCE_MS)
    const response = await fetch(page, {
      redirect: 'manual',
      signal: AbortSignal.any([signal, timeout]),
    }).catch(() => null)
    signal.throwIfAborted()
    const status = response?.status ?? null
    await response?.body?.cancel()
    if ((status !== null && status < 500) || performance.now() - began > PATIENCE_MS) return status
    await Bun.sleep(POLL_INTERVAL_MS)
  }
}

/** Prints what an app has printed of late. */
export async function printRecent(out: OutputStream, client: Client, { id }: Project): Promise<void> {
  const { logs } = await projectLog(client, id).read({ since: `${RECENT_S}s` })
  for (const line of logs) await out.write(logText(out, line))
}
