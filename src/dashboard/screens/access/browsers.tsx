import { useCallback } from 'preact/hooks'
import type { ResponseOf } from '../../../client/client.ts'
import { Button } from '../../components/button.tsx'
import { Failure } from '../../components/loaded.tsx'
import { Section } from '../../components/section.tsx'
import { Time } from '../../components/time.tsx'
import { useDashboard } from '../../dashboard.ts'
import { useList } from './use-list.ts'

type Browser = ResponseOf<'browsers.list'>['browsers'][number]

/** The browsers that are signed in, and the end of their sessions. */
export function Browsers() {
  const { api, notices } = useDashboard()
  const { list, load } = useList(useCallback(async () => (await api.call('browsers.list')).browsers, [api]))
  const browsers = list instanceof Error ? [] : (list ?? [])
  const others = browsers.filter((browser) => !browser.is_current)
  const signOut = (browserId: string) => api.call('browsers.delete', { params: { browserId } })
  return (
    <Section
      title="Browsers"
      actions={
        others.length > 1 && (
          <Button
            onClick={async () => {
              for (const { id } of others) await signOut(id)
              notices.done('All other browsers are signed out.')
              await load()
            }}
          >
            Sign out all others
          </Button>
        )
      }
    >
      {list instanceof Error && <Failure error={list} retry={load} />}
      <ul class="cards">
        {browsers.map((browser) => (
          <BrowserCard
            key={browser.id}
            browser={browser}
            onSignOut={async () => {
              await signOut(browser.id)
              // The page of a session that has ended leads to the sign-in.
              if (browser.is_current) location.assign('/signin?done=signed-out')
              else await load()
            }}
          />
        ))}
      </ul>
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
