import { useState } from 'preact/hooks'
import { Button } from '../components/button.tsx'
import { Id } from '../components/copy.tsx'
import { Confirm, FormDialog, ShownOnce } from '../components/dialog.tsx'
import { TextField } from '../components/field.tsx'
import { CommandLines, shellQuoted } from '../components/http.tsx'
import { Empty, Loaded, ScreenPage, Section } from '../components/page.tsx'
import { Time } from '../components/time.tsx'
import { useDashboard } from '../dashboard.ts'
import type { ApiKey, Browser, Program } from '../store/store.ts'

/** All that has access to the account: API keys, programs and browsers. */
export default function AccessScreen() {
  const { store } = useDashboard()
  const [isCreating, setCreating] = useState(false)
  return (
    <ScreenPage
      title="Access"
      actions={
        <Button isNew look="primary" icon="plus" onClick={() => setCreating(true)}>
          Create a key
        </Button>
      }
    >
      <Section title="API keys">
        <p class="quiet">
          For programs and the command line: <code>berth login</code> in a terminal adds one for it.{' '}
          <a href="/access">Show the text of a key</a> again.
        </p>
        <Loaded of={store.keys}>
          {(keys) =>
            keys.length === 0 ? (
              <Empty title="No keys yet" />
            ) : (
              <ul class="cards">
                {keys.map((key) => (
                  <KeyCard key={key.id} apiKey={key} />
                ))}
              </ul>
            )
          }
        </Loaded>
      </Section>
      <Programs />
      <Browsers />
      {isCreating && <CreateKey onClose={() => setCreating(false)} />}
    </ScreenPage>
  )
}

function KeyCard({ apiKey }: { apiKey: ApiKey }) {
  const { api, store } = useDashboard()
  const [isDeleting, setDeleting] = useState(false)
  const { id, label, masked, created_at: createdAt, last_used_at: lastUsedAt } = apiKey
  return (
    <li class="card">
      <div class="card-main">
        <p>
          <strong>
            <bdi>{label}</bdi>
          </strong>{' '}
          <code>{masked}</code> <Id id={id} />
        </p>
        <p class="quiet">
          Reaches <Reach of={apiKey} />. Created <Time at={createdAt} />, used <Time at={lastUsedAt} />.
        </p>
      </div>
      <Button look="danger" onClick={() => setDeleting(true)}>
        Delete
      </Button>
      {isDeleting && (
        <Confirm
          title={`Delete the key ${label}?`}
          action="Delete the key"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await api.call('keys.delete', { params: { keyId: id } })
            store.keys.remove(id)
          }}
        >
          <p>Programs that use it are refused from then on, and browsers that it signed in are signed out.</p>
        </Confirm>
      )}
    </li>
  )
}

/** Asks for the purpose and the reach of a new key, creates it, and shows its text. */
function CreateKey({ onClose }: { onClose: () => void }) {
  const { api, store } = useDashboard()
  const [label, setLabel] = useState('')
  const [isLimited, setLimited] = useState(false)
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set())
  const [text, setText] = useState<string | null>(null)
  const known = store.servers.open().list.value
  const servers = isLimited ? [...ticked] : []
  const body = { label, ...(isLimited && { allowed_server_ids: servers }) }
  // An empty list would mean everything, here and in the lines for a terminal.
  const isUnchosen = isLimited && servers.length === 0
  const create = async (): Promise<void> => {
    const { key, ...shown } = await api.call('keys.create', { body })
    store.keys.add(shown)
    setText(key)
  }
  if (text !== null)
    return (
      <ShownOnce
        title={`The key ${label}`}
        about="A program that has it can do all that it reaches. Keep it out of code and chats."
        text={text}
        onClose={onClose}
      />
    )
  return (
    <FormDialog
      title="Create a key"
      action="Create"
      onSubmit={create}
      isDisabled={isUnchosen}
      staysOpen
      onClose={onClose}
      commands={
        !isUnchosen && (
          <CommandLines
            berth={`berth keys create ${shellQuoted(label)}${servers.map((id) => ` --server ${id}`).join('')}`}
            method="POST"
            path="/keys"
            body={body}
          />
        )
      }
    >
      <TextField
        name="label"
        label="What is it for?"
        value={label}
        onValue={setLabel}
        isRequired
        maxLength={40}
        placeholder="CI"
      />
      <fieldset class="choice">
        <legend>What does it reach?</legend>
        <label>
          <input type="radio" name="reach" checked={!isLimited} onChange={() => setLimited(false)} />
          The whole account
        </label>
        <label>
          <input type="radio" name="reach" checked={isLimited} onChange={() => setLimited(true)} />
          Only some servers
        </label>
      </fieldset>
      {isLimited && (
        <fieldset class="choice">
          <legend>Servers that it reaches</legend>
          {known.length === 0 && <p class="quiet">There is no server yet.</p>}
          {known.map(({ id, task }) => (
            <label key={id}>
              <input
                type="checkbox"
                checked={ticked.has(id)}
                onChange={({ currentTarget }) => {
                  const next = new Set(ticked)
                  if (currentTarget.checked) next.add(id)
                  else next.delete(id)
                  setTicked(next)
                }}
              />
              <bdi>{task || id}</bdi>
            </label>
          ))}
        </fieldset>
      )}
    </FormDialog>
  )
}

/** The programs that may use the account by OAuth, and the end of their access. */
function Programs() {
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

/** The browsers that are signed in, and the end of their sessions. */
function Browsers() {
  const { api, clock, notices, session, store } = useDashboard()
  const others = store.browsers.open().list.value.filter((browser) => !browser.is_current)
  const signOut = async ({ id, is_current: isCurrent }: Browser): Promise<void> => {
    const end = () => api.call('browsers.delete', { params: { browserId: id } })
    if (isCurrent) return session.end(end)
    await end()
    store.browsers.remove(id)
  }
  return (
    <Section
      title="Browsers"
      actions={
        others.length > 1 && (
          <Button
            onClick={async () => {
              for (const browser of others) await signOut(browser)
              notices.done('All other browsers are signed out.')
            }}
          >
            Sign out all others
          </Button>
        )
      }
    >
      <Loaded of={store.browsers}>
        {(browsers) => (
          <ul class="cards">
            {browsers
              // The age of a session ends it without a message.
              .filter((browser) => Date.parse(browser.expires_at) > clock.now.value)
              .map((browser) => (
                <BrowserCard key={browser.id} browser={browser} onSignOut={() => signOut(browser)} />
              ))}
          </ul>
        )}
      </Loaded>
      <p class="quiet">
        <code>berth open</code> in a terminal signs another browser in; <code>berth open --print</code> prints
        its link, for one on another machine.
      </p>
    </Section>
  )
}

function BrowserCard({ browser, onSignOut }: { browser: Browser; onSignOut: () => Promise<void> }) {
  const { name, is_current: isCurrent, is_admin: isAdmin, created_at: at } = browser
  const { last_used_at: lastUsedAt, expires_at: endsAt } = browser
  return (
    <li class="card">
      <div class="card-main">
        <p>
          <strong>
            <bdi>{name}</bdi>
          </strong>{' '}
          {isCurrent && <span class="chip accent">this one</span>}
          {isAdmin && (
            <span class="chip" title="May use the control API: it has the rights of the instance">
              rights of the instance
            </span>
          )}
        </p>
        <p class="quiet">
          Signed in <Time at={at} />, used <Time at={lastUsedAt} />, ends <Time at={endsAt} /> if it is not
          used.
        </p>
      </div>
      <Button label={isCurrent ? 'Sign out this browser' : `Sign out ${name}`} onClick={onSignOut}>
        Sign out
      </Button>
    </li>
  )
}

/** The scope of a credential, as the API shows it. */
interface Scope {
  readonly allowed_server_ids: readonly string[]
  readonly allowed_project_ids: readonly string[]
}

/** What a credential reaches, in words. */
function Reach({ of: { allowed_server_ids: servers, allowed_project_ids: projects } }: { of: Scope }) {
  const { store } = useDashboard()
  if (servers.length + projects.length === 0) return <>the whole account</>
  const names = [
    ...servers.map((id) => store.servers.open().get(id)?.task || id),
    ...projects.map((id) => store.projects.open().get(id)?.name ?? id),
  ]
  return (
    <>
      only <bdi>{names.join(', ')}</bdi>
    </>
  )
}
