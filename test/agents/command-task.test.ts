import { expect, test } from 'bun:test'
import { until } from '../compute/bench.ts'
import { type TestBerth, testBerth } from '../support/berth.ts'

const flags = (command: string) => ({
  agent: 'command',
  'agent-command': command,
  'agent-question': '^\\? (.*)$',
})

/** Resolves with a task when its status is this. */
async function task(berth: TestBerth, path: string, status: string) {
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  let found: any
  await until(`the task to be ${status}`, async () => {
    found = (await berth.call('GET', path)).body.task
    return found.status === status
  })
  return found
}

test('a task is a command-line agent on its server, which asks, and sees the server’s secrets', async () => {
  const command = `f() { echo "works on $1"; printf '? Colour '; read -r c; echo "$c $KEY" > made; echo "made it $c with $KEY"; }; f`
  await using berth = await testBerth({ flags: flags(command) })
  const server = await berth.server()
  await berth.call('PUT', '/secrets', { server_id: server, secrets: { KEY: 'very-secret' } })
  const { body, status } = await berth.call('POST', `/servers/${server}/tasks`, { goal: 'paint $(id)' })
  expect(status).toBe(201)
  const path = `/servers/${server}/tasks/${body.task_id}`
  expect(await task(berth, path, 'awaiting_input')).toMatchObject({ question: 'Colour' })
  await berth.call('POST', `${path}/input`, { answer: 'blue' })
  const { result } = await task(berth, path, 'completed')
  expect(result).toEndWith('made it blue with ***')
  expect((await berth.exec(server, 'cat made')).stdout).toBe('blue very-secret\n')
  const { events } = (await berth.call('GET', `${path}/events`)).body
  const types = events.map(({ type }: { type: string }) => type)
  expect(types).toEqual([
    'status',
    'terminal',
    'question',
    'status',
    'answer',
    'status',
    'terminal',
    'status',
  ])
  expect(JSON.stringify(events)).toContain('works on paint $(id)')
  expect(JSON.stringify(events)).not.toContain('very-secret')
})

test('cancelling a task, and stopping its server, ends the agent and all that it started', async () => {
  const command = `f() { setsid -f sleep 31337; echo begun; trap '' TERM; sleep 31337; }; f`
  await using berth = await testBerth({ flags: flags(command) })
  const server = await berth.server()
  const begin = async (): Promise<string> => {
    const { body } = await berth.call('POST', `/servers/${server}/tasks`, { goal: 'x' })
    const path = `/servers/${server}/tasks/${body.task_id}`
    await until('its beginning', async () => {
      const { events } = (await berth.call('GET', `${path}/events`)).body
      return JSON.stringify(events).includes('begun')
    })
    return path
  }
  const sleepers = async () =>
    Number((await berth.exec(server, 'grep -alzx "3133[7]" /proc/[0-9]*/cmdline | wc -l')).stdout)
  const cancelled = await begin()
  expect(await sleepers()).toBe(2)
  await berth.call('POST', `${cancelled}/cancel`)
  await task(berth, cancelled, 'cancelled')
  await until('all to be gone', async () => (await sleepers()) === 0)
  const stopped = await begin()
  await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
  await task(berth, stopped, 'failed')
})
