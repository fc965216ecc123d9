import type { PollView } from '../poll.ts'
import { readPoll, vote } from './api.ts'

const REFRESH_MS = 3_000

const question = byId('question')
const options = byId('options')
const status = byId('status')

function byId(id: string): HTMLElement {
  const found = document.getElementById(id)
  if (!found) throw new Error(`index.html has no element with the id "${id}".`)
  return found
}

/** Shows the poll. Buttons are made once, so that the focus stays where it is and bars can grow. */
function show(poll: PollView): void {
  question.textContent = poll.question
  document.title = poll.question
  const total = poll.options.reduce((sum, { votes }) => sum + votes, 0)
  if (options.childElementCount !== poll.options.length) {
    options.replaceChildren(...poll.options.map(({ id }) => button(id)))
  }
  poll.options.forEach(({ id, label, votes }, index) => {
    const element = options.children[index] as HTMLElement
    const share = total === 0 ? 0 : Math.round((votes / total) * 100)
    element.ariaPressed = String(id === poll.chosen)
    element.style.setProperty('--share', `${share}%`)
    const [name, result] = element.children
    if (name) name.textContent = label
    if (result) result.textContent = `${share} %`
  })
  const count = total === 1 ? '1 vote' : `${total} votes`
  status.textContent =
    poll.chosen === null ? `${count}. What do you say?` : `${count}. Change yours at any time.`
  status.classList.remove('failed')
}

function button(id: number): HTMLButtonElement {
  const element = document.createElement('button')
  element.type = 'button'
  element.append(document.createElement('span'), document.createElement('span'))
  element.addEventListener('click', () => attempt(() => vote(id)))
  return element
}

let turn = 0
/** Shows what an action answers, unless a later one was begun, or what went wrong. */
async function attempt(action: () => Promise<PollView>): Promise<void> {
  turn += 1
  const own = turn
  try {
    const poll = await action()
    if (own === turn) show(poll)
  } catch (error) {
    status.textContent = error instanceof Error ? error.message : String(error)
    status.classList.add('failed')
  }
}

const timer = setInterval(() => {
  if (!document.hidden) attempt(readPoll)
}, REFRESH_MS)
attempt(readPoll)

// In development this file is replaced in the open page when it changes: what it began has to end.
if (import.meta.hot) {
  import.meta.hot.accept()
  import.meta.hot.dispose(() => {
    clearInterval(timer)
    options.replaceChildren()
  })
}
