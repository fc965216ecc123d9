import { berth } from '@owner/berth-client/testing'
import { expect, test } from './fixtures.js'

test('a file is written and read back', async ({ request }) => {
  const { id } = await (await request.post('/servers')).json()
  const file = { path: 'notes/hello.txt', content: 'hello' }
  await expect(await request.put(`/servers/${id}/files`, { data: file })).toBeOK()
  const read = await request.get(`/servers/${id}/files`, { params: { path: file.path } })
  expect(await read.json()).toEqual(file)
})

test('a task comes to its end', async ({ request }) => {
  const { id } = await (await request.post('/servers')).json()
  const started = await request.post(`/servers/${id}/tasks`, { data: { goal: 'complete: All is well.' } })
  const { task_id } = await started.json()
  const { task } = await berth.wait({ task: task_id })
  expect(task).toMatchObject({ status: 'completed', result: 'All is well.' })
})

test('a webhook is signed', async ({ request, account }) => {
  const inbox = await account.inbox()
  await expect(
    await request.post('/webhooks', { data: { url: inbox.url, events: ['server.created'] } }),
  ).toBeOK()
  const { id } = await (await request.post('/servers')).json()
  const [entry] = await inbox.wait()
  expect(entry).toMatchObject({ verified: true, json: { event: 'server.created', server_id: id } })
})
