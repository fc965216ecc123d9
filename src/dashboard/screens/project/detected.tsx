import type { Project } from '../../store/store.ts'

/** What berth has found out about the app, and by which of its files. */
export function Detected({ project: { app } }: { project: Project }) {
  if (!app) return null
  const { kind, evidence, directory, serves, install, build, release, start, health } = app
  const files = [...new Set(evidence.map(({ file }) => file))]
  return (
    <details class="detected">
      <summary>
        <strong>{kind}</strong>
        {files.length > 0 && (
          <span class="quiet">
            {' '}
            by <bdi>{files.join(', ')}</bdi>
          </span>
        )}
      </summary>
      <dl class="facts">
        {directory !== '.' && (
          <>
            <dt>Directory</dt>
            <dd>
              <code>{directory}</code>
            </dd>
          </>
        )}
        <Command name="Install" command={install} />
        <Command name="Build" command={build} />
        {release !== null && <Command name="Release" command={release} />}
        {serves === null ? (
          <Command name="Start" command={start} />
        ) : (
          <>
            <dt>Start</dt>
            <dd>
              berth serves the files of <code>{serves}</code>
            </dd>
          </>
        )}
        <dt>Health</dt>
        <dd>
          <code>{health}</code> responds with a status below 500
        </dd>
      </dl>
      <p class="quiet">
        A <code>berth.json</code> in the code changes any of it.{' '}
        <a href="/docs/guide/apps">How apps are detected</a>
      </p>
    </details>
  )
}

const Command = ({ name, command }: { name: string; command: string | null }) => (
  <>
    <dt>{name}</dt>
    <dd>{command === null ? <span class="quiet">nothing to do</span> : <code>{command}</code>}</dd>
  </>
)
