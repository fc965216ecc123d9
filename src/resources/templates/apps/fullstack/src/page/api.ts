import type { PollView } from '../poll.ts'

const voter = ownName()

/** How the poll stands. @throws Error with a sentence for the person at the page */
export const readPoll = (): Promise<PollView> => ask('/api/poll')

/** Votes, and tells how the poll stands then. @throws Error likewise */
export const vote = (option: number): Promise<PollView> =>
  ask('/api/poll/vote', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ option }),
  })

async function ask(path: string, init: RequestInit = {}): Promise<PollView> {
  const headers = { ...init.headers, 'x-voter': voter }
  const response = await fetch(path, { ...init, headers }).catch(() => null)
  if (!response) throw new Error('The app does not answer. Trying again.')
  const answer = await response.json().catch(() => null)
  if (!response.ok || answer === null)
    throw new Error(answer?.error ?? `The app answered ${response.status}.`)
  return answer
}

/** A name by which the app knows this browser again. Where nothing may be stored, it is as old as the page. */
function ownName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  const fresh = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  try {
    const name = localStorage.getItem('voter') ?? fresh
    localStorage.setItem('voter', name)
    return name
  } catch {
    return fresh
  }
}
