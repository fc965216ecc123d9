import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Section } from '../../components/section.tsx'
import { Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Program } from '../../store/store.ts'
import { Reach } from './reach.tsx'

/** The programs that may use the account by OAuth, and the end of their access. */
export function Programs() {
  const { context, store } = useDashboard()
  return (
    <Section title="Programs">
      <Loaded of={store.programs}>
        {(programs) =>
          programs.length === 0 ? (
            <p class="quiet">
              No program was let in. Point an MCP host, such as an editor, at{' '}
              <code>{`${context.base_url}/mcp`}</code>: it brings you to a page that asks what it may do.
            </p>
          ) : (
            <ul class="cards">
              {programs.map((program) => (
                <ProgramCard key={program.id} program={program} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  )
}

function ProgramCard({ program }: { program: Program }) {
  const { api, notices, store } = useDashboard()
  const [isAsked, setAsked] = useState(false)
  const { id, name, redirect_uris: uris, created_at: createdAt, last_used_at: lastUsedAt } = program
  return (
    <li class="card">
      <div class="card-main">
        <p>
          <strong>
            <bdi>{name}</bdi>
          </strong>
        </p>
        <p class="quiet">
          Reaches <Reach of={program} />. Its codes go to{' '}
          <bdi>{[...new Set(uris.map(placeOf))].join(', ')}</bdi>. Let in <Time at={createdAt} />, used{' '}
          <Time at={lastUsedAt} />.
        </p>
      </div>
      <Button look="danger" label={`Revoke the access of ${name}`} onClick={() => setAsked(true)}>
        Revoke
      </Button>
      {isAsked && (
        <Confirm
          title={`Revoke the access of ${name}?`}
          action="Revoke"
          onClose={() => setAsked(false)}
          onConfirm={async () => {
            await api.call('programs.delete', { params: { programId: id } })
            notices.done(`${name} is let in no more.`)
            store.programs.remove(id)
          }}
        >
          <p>All its tokens end at once. It has to ask you again.</p>
        </Confirm>
      )}
    </li>
  )
}

/** Returns where an address leads, in a word: a program can choose its name freely, but not that. */
function placeOf(uri: string): string {
  const url = URL.parse(uri)
  if (!url) return uri
  if (!/^https?:$/.test(url.protocol)) return `an app for ${url.protocol}// links`
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname) ? 'this machine' : url.host
}
