import { Button } from '../../components/button.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Section } from '../../components/section.tsx'
import { Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Browser } from '../../store/store.ts'

/** The browsers that are signed in, and the end of their sessions. */
export function Browsers() {
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
