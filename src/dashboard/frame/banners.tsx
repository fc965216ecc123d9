import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { Button } from '../components/button.tsx'
import { span } from '../components/time.tsx'
import { type Dashboard, useDashboard } from '../dashboard.ts'
import { isSpent } from '../store/store.ts'

/** Most that are shown each in a line of its own. @bound reader */
const MOST = 2

/** A state that is not normal. */
interface Banner {
  readonly key: string
  /** The state in a few words, for several in one line. */
  readonly short: string
  /** What it means. */
  readonly text: ComponentChildren
  /** What ends it, or leads there. */
  readonly actions?: ComponentChildren
}

/**
 * Names every unusual state above every screen, and offers to end it. Many take one line until the person opens them.
 */
export function Banners() {
  const dashboard = useDashboard()
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  const [hidden, setHidden] = useState(readHidden)
  const hide = (key: string): void => setHidden(keepHidden([...hidden, key]))
  const banners = [...budgetBanners(dashboard), ...isolationBanners(dashboard, hide)]
    .concat(upgradeBanners(dashboard), clockBanners(dashboard), faultBanners(dashboard))
    .filter(({ key }) => !hidden.includes(key))
  const isLost = dashboard.changes.state.value === 'lost'
  const isFolded = banners.length > MOST
  return (
    <div class="banners" aria-live="polite">
      {isLost && (
        <p class="banner failure">
          The connection to berth is lost: what you see may be old. The page connects again by itself.
        </p>
      )}
      {isFolded && (
        <div class="banner">
          <span class="banner-text">{banners.map(({ short }) => short).join(' · ')}</span>
          <button
            type="button"
            class="button plain"
            aria-expanded={isOpen}
            aria-controls={id}
            onClick={() => setOpen(!isOpen)}
          >
            {isOpen ? 'Fold' : 'Show'}
          </button>
        </div>
      )}
      {(isOpen || !isFolded) && (
        <div id={id}>
          {banners.map(({ key, text, actions }) => (
            <div key={key} class={`banner${isFolded ? ' inner' : ''}`}>
              <span class="banner-text">{text}</span>
              {actions}
            </div>
          ))}
        </div>
      )}
    </div>
  )
}

function budgetBanners({ api, context, notices, store }: Dashboard): Banner[] {
  const [budget] = store.budget.open().list.value
  if (!budget || budget.credits_used < budget.budget_cap) return []
  const raised = Math.max(1, budget.budget_cap * 2)
  return [
    {
      key: 'budget',
      short: 'Budget used up',
      text: `The budget of ${budget.budget_cap} credits a month is used up: nothing is created or started until it is raised or the month ends.`,
      actions: context.is_admin ? (
        <Button
          onClick={async () => {
            const params = { accountId: budget.id }
            await api.call('control.accounts.update', { params, body: { budget_cap: raised } })
            notices.done(`The budget is ${raised} credits a month.`)
          }}
        >
          Raise it to {raised}
        </Button>
      ) : (
        <a href="/dashboard/usage">Usage</a>
      ),
    },
  ]
}

function isolationBanners({ health }: Dashboard, hide: (key: string) => void): Banner[] {
  const known = health.value.value
  if (!known) return []
  const { isolation } = known.enforced
  const isNone = isolation === 'none'
  // Of an engine nothing is weaker because this machine lacks something.
  if (!isNone && (known.compute !== 'local' || known.isolation_rejected.length === 0)) return []
  const key = `isolation ${isolation}`
  return [
    {
      key,
      short: isNone ? 'No isolation' : `Isolation by ${isolation} only`,
      text: isNone
        ? 'Servers are not isolated: their programs see the files and processes of this machine.'
        : `Servers are isolated by ${isolation}: ${known.isolation_rejected.join(' and ')} cannot be used here. berth doctor says why.`,
      actions: (
        <>
          <a href="/docs/guide/isolation">What that means</a>
          <Button onClick={() => hide(key)}>Hide</Button>
        </>
      ),
    },
  ]
}

function upgradeBanners({ context, health }: Dashboard): Banner[] {
  const version = health.value.value?.version ?? context.version
  if (version === context.version) return []
  return [
    {
      key: 'upgrade',
      short: 'berth was upgraded',
      text: `berth ${version} runs now; this page is of ${context.version}.`,
      actions: <Button onClick={() => location.reload()}>Load the page again</Button>,
    },
  ]
}

function clockBanners({ api, clock, context }: Dashboard): Banner[] {
  const { isFrozen, offsetMs } = clock.steering.value
  const isMoved = Math.abs(offsetMs) >= 1_000
  if (!isFrozen && !isMoved) return []
  const by = `moved by ${offsetMs < 0 ? '−' : '+'}${span(offsetMs)}`
  const move = (body: { freeze: false } | { reset: true }) => async () => {
    clock.set(await api.call('control.clock.move', { body }))
  }
  return [
    {
      key: 'clock',
      short: isFrozen ? 'Clock frozen' : 'Clock moved',
      text: isFrozen
        ? `The clock stands${isMoved ? `, ${by}` : ''}: nothing falls due until it goes on.`
        : `The clock is ${by}: times, budgets and retries go by it.`,
      actions: context.is_admin && (
        <>
          {isFrozen && <Button onClick={move({ freeze: false })}>Let it run</Button>}
          {isMoved && <Button onClick={move({ reset: true })}>Reset the clock</Button>}
        </>
      ),
    },
  ]
}

function faultBanners({ api, context, notices, store }: Dashboard): Banner[] {
  const set = context.is_admin ? store.faults.open().list.value : []
  const faults = set.filter((fault) => !isSpent(fault))
  if (faults.length === 0) return []
  const short = faults.length === 1 ? 'A fault is set' : `${faults.length} faults are set`
  const ofDeliveries = faults.filter(({ match }) => match.deliveries !== undefined).length
  const targets = [
    ofDeliveries < faults.length && 'requests',
    ofDeliveries > 0 && 'deliveries of webhooks',
  ].filter(Boolean)
  return [
    {
      key: 'faults',
      short,
      text: `${short}: ${targets.join(' and ')} that match fail on purpose.`,
      actions: (
        <>
          <a href="/dashboard/controls/faults">Show</a>
          <Button
            onClick={async () => {
              await api.call('control.faults.clear')
              for (const { id } of store.faults.list.peek()) store.faults.remove(id)
              notices.done('All faults were removed.')
            }}
          >
            Remove all
          </Button>
        </>
      ),
    },
  ]
}

/** Where the tab keeps which banners were hidden. */
const HIDDEN = 'berth.hidden-banners'

function readHidden(): readonly string[] {
  try {
    return JSON.parse(sessionStorage.getItem(HIDDEN) ?? '[]') as string[]
  } catch {
    // The browser keeps nothing, or not JSON: no banner is hidden.
    return []
  }
}

function keepHidden(keys: readonly string[]): readonly string[] {
  try {
    sessionStorage.setItem(HIDDEN, JSON.stringify(keys))
  } catch {
    // A browser that keeps nothing shows it again at the next load.
  }
  return keys
}
