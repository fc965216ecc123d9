import { expect, test } from 'bun:test'
import { serveForTests } from './command.ts'

const berth = await serveForTests(['--isolation', 'none'])

const url = 'https://8.8.8.8/hook'

const json = (...args: string[]) => berth.json('webhooks', ...args)

test('a webhook is created, listed and deleted from the terminal', async () => {
  const { id, secret, ...created } = await json('create', url, '--events', 'task.failed, task.created')
  expect(created).toMatchObject({ url, events: ['task.failed', 'task.created'] })
  expect(secret).toMatch(/^whsec_/)
  const { webhooks } = await json('list')
  expect(webhooks.map((one: { id: string }) => one.id)).toEqual([id])
  expect(JSON.stringify(webhooks)).not.toContain(secret)
  expect(await json('delete', id)).toEqual({ id, deleted: true })
  expect((await json('create', url)).events.length).toBe(15)
  for (const { id } of (await json('list')).webhooks) await json('delete', id)
})

test('people get a table and, once, the secret', async () => {
  expect((await berth.run(['webhooks'])).stdout).toBe(
    'No webhooks yet. Make one with "berth webhooks create URL".\n',
  )
  const created = (await berth.run(['webhooks', 'create', url, '--events', 'quota.threshold'])).stdout
  const secret = /^Secret +(whsec_\S+)$/m.exec(created)?.[1] ?? ''
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  const { stdout } = await berth.run(['webhooks'])
  expect(stdout).toMatch(
    /^ID +URL +CREATED +EVENTS\nwh_\w+ +https:\/\/8\.8\.8\.8\/hook +\S+Z +quota\.threshold\n$/,
  )
  const id = /wh_\w+/.exec(stdout)?.[0] ?? ''
  expect((await berth.run(['webhooks', 'rm', id])).stdout).toBe(`Deleted ${id}.\n`)
})

test('webhooks to this machine are admitted from the terminal, and no longer', async () => {
  expect(await json('local')).toEqual({ allowed: false })
  expect((await berth.run(['webhooks', 'local', 'on'])).stdout).toBe('Webhooks may lead to this machine.\n')
  const { id } = await json('create', 'http://localhost:9000/')
  await json('delete', id)
  expect((await berth.run(['webhooks', 'local', 'off'])).stdout).toContain('public https addresses only')
  expect((await berth.run(['webhooks', 'local', 'maybe'])).exitCode).toBe(2)
})

test('a webhook that its receiver switched off is shown so, and switched on again', async () => {
  await berth.run(['webhooks', 'local', 'on'])
  const inbox = `${berth.info.base_url}/_berth/inbox/gone?respond=410`
  const { id } = await json('create', inbox, '--events', 'tuning.started')
  expect((await berth.run(['trigger', 'tuning.started'])).stdout).toContain('410')
  expect((await berth.run(['webhooks'])).stdout).toContain('disabled: tuning.started\n')
  expect((await berth.run(['deliveries'])).stdout).toContain('disabled')
  expect((await berth.run(['webhooks', 'enable', id])).stdout).toBe(
    `Events from now on are sent by ${id} to ${inbox}.\n`,
  )
  expect((await json('list')).webhooks[0].disabled_at).toBeNull()
  await json('delete', id)
  await berth.run(['webhooks', 'local', 'off'])
})

test('a refusal is printed with the reason', async () => {
  const local = await berth.run(['webhooks', 'create', 'http://localhost:9000/'])
  expect(local).toMatchObject({ exitCode: 1, stdout: '' })
  expect(local.stderr).toContain('--allow-local-webhooks')
  const unknown = await berth.run(['webhooks', 'create', url, '--events', 'task.exploded'])
  expect(unknown.stderr).toMatch(/^berth: .*"task\.exploded".*\(bad_request\)\n$/)
})
