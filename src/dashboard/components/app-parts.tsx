import type { Project } from '../store/store.ts'
import { State } from './state.tsx'
import { Time } from './time.tsx'

/** Says how an app crashed, and when it is started again. Nothing of one that did not. */
export function CrashNotice({ crash, remedy }: { crash: Project['crash'] | undefined; remedy: string }) {
  if (!crash) return null
  return (
    <div class="notice failure" role="alert">
      <p>{crash.reason}</p>
      <p class="quiet">
        It responded last <Time at={crash.since} />.{' '}
        {crash.restarts_at === null ? (
          `Nothing starts it again by itself: ${remedy}.`
        ) : (
          <>
            Attempt {crash.attempt} of 5 begins <Time at={crash.restarts_at} isDue />.
          </>
        )}
      </p>
    </div>
  )
}

/** Lists the warnings about the pages of a running app; nothing without any. */
export function Warnings({ warnings }: { warnings: readonly string[] }) {
  if (warnings.length === 0) return null
  return (
    <div class="notice warning" role="status">
      {warnings.map((text) => (
        <p key={text}>Warning: {text}</p>
      ))}
    </div>
  )
}

/** The programs that run beside an app, each with its state and its command. Nothing of an app without any. */
export function WorkerList({ workers }: { workers: Project['workers'] }) {
  if (workers.length === 0) return null
  return (
    <ul class="workers" aria-label="Workers">
      {workers.map(({ name, command, status, exit_code: code, restarts }) => (
        <li key={name}>
          <strong>
            <bdi>{name}</bdi>
          </strong>
          <State of={status} />
          {code !== null && <span class="quiet">exit code {code}</span>}
          {restarts > 0 && <span class="quiet">{restarts === 1 ? '1 restart' : `${restarts} restarts`}</span>}
          <code>{command}</code>
        </li>
      ))}
    </ul>
  )
}
