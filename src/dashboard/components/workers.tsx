import type { Project } from '../store/store.ts'
import { State } from './state.tsx'

/** The programs that run beside an app, each with its state and its command. Nothing of an app without any. */
export function Workers({ workers }: { workers: Project['workers'] }) {
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
