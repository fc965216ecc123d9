import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ResponseOf } from '../../route-client/client.ts'
import { useDashboard } from '../dashboard.ts'
import { Confirm } from './dialog.tsx'
import { span } from './time.tsx'

/** Berth's clock and its next timers. */
export type ClockReading = ResponseOf<'control.clock.read'>

/** Where the clock is moved: forward by a duration, as in `1h` and in milliseconds, or to a time. */
type Goal = { readonly advance: string; readonly ms: number } | { readonly set: string }

/** Distance in milliseconds up to which the clock moves without a question, unless the button names it. */
export const FAR_MS = 86_400_000

/** Moves the clock, with a question before if that needs one. */
interface ClockMover {
  /** Moves the clock. Asks first if this browser's session ends on the way, or from a distance on. */
  readonly move: (goal: Goal, asksFrom?: number) => Promise<void>
  /** The question, while there is one. */
  readonly question: ComponentChildren
}

/** Moves berth's clock for a screen that shows `question`. */
export function useClockMover(): ClockMover {
  const { api, clock } = useDashboard()
  const [asked, setAsked] = useState<Asked | null>(null)
  const moveNow = async (goal: Goal): Promise<void> => {
    const body = 'set' in goal ? goal : { advance: goal.advance }
    clock.set(await api.call('control.clock.move', { body }))
  }
  return {
    question: asked && (
      <MoveFar {...asked} onConfirm={() => moveNow(asked.goal)} onClose={() => setAsked(null)} />
    ),
    move: async (goal, asksFrom = FAR_MS) => {
      const [state, { browsers }] = await Promise.all([
        api.call('control.clock.read'),
        api.call('browsers.list'),
      ])
      const now = Date.parse(state.now)
      const at = 'set' in goal ? Date.parse(goal.set) : now + goal.ms
      const session = browsers.find((browser) => browser.is_current)
      const endsSession = session !== undefined && at >= Date.parse(session.expires_at)
      if (endsSession || at - now > asksFrom) setAsked({ goal, at, state, endsSession })
      else await moveNow(goal)
    },
  }
}

/** A move that somebody has to agree to. */
interface Asked {
  readonly goal: Goal
  /** When it ends, in milliseconds since 1970. */
  readonly at: number
  /** The clock before it. */
  readonly state: ClockReading
  /** Whether this browser's session ends on the way. */
  readonly endsSession: boolean
}

/** Asks before the clock is moved far, and lists the timers on the way. */
function MoveFar({
  at,
  state,
  endsSession,
  onConfirm,
  onClose,
}: Omit<Asked, 'goal'> & { onConfirm: () => Promise<unknown>; onClose: () => void }) {
  const { context } = useDashboard()
  const distance = span(at - Date.parse(state.now))
  const passed = state.next.filter((timer) => timer.id !== context.session_id && Date.parse(timer.at) < at)
  const names = [...new Set(passed.map(({ name }) => name))]
  return (
    <Confirm
      title={`Move the clock by ${distance}?`}
      action="Move the clock"
      onConfirm={onConfirm}
      onClose={onClose}
    >
      <ul>
        {endsSession && (
          <li>
            This browser's session ends on the way: sign in again with <code>berth open</code>, or the link of{' '}
            <code>berth open --print</code>.
          </li>
        )}
        <li>Running servers are charged for {distance}.</li>
        {names.length > 0 && <li>On the way: {names.map(timerWords).join('; ')}.</li>}
      </ul>
    </Confirm>
  )
}

/** What happens at the timers of berth's clock, in words; docs/accounts.md lists their names. */
const WORDS: Readonly<Record<string, string>> = {
  'server.sleep': 'a server that nobody uses goes to sleep',
  'delivery.retry': 'a delivery is tried again',
  'webhook.retry': 'deliveries of a webhook begin again',
  'task.continue': 'a scenario goes on after its wait',
  'model.retry': 'a language model is asked again',
  'project.restart': 'a crashed app starts again',
  'deployment.restart': 'a crashed deployment starts again',
  'terminal.hang_up': 'a terminal that nobody uses is ended',
  'terminal.forget': 'an ended terminal leaves the list',
  'execution.end': 'an execution that nobody uses is ended',
  'execution.forget': 'an ended execution leaves the list',
  'account.budget': 'a budget reaches a mark, or the month ends',
  'session.end': 'a browser is signed out',
}

/** Describes a timer in words, or by its name if that is new. */
export const timerWords = (name: string): string => WORDS[name] ?? name
