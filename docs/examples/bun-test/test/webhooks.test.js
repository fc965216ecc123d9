import { afterAll, beforeAll, expect, test } from 'bun:test'
import { berth } from '@owner/berth-client/testing'
import { Reports, readWebhook } from '../reports.js'

let account
beforeAll(async () => {
  account = await berth.account()
})
afterAll(() => account?.remove())

test('a webhook is believed when it is signed, and only then', async () => {
  const reports = new Reports(account)
  // An inbox is there as soon as it is named. It keeps what it gets, and says whether the signature is right.
  const inbox = await account.inbox()
  const secret = await reports.subscribe(inbox.url, ['task.completed'])
  const task = await reports.write(await reports.open(), 'complete: done')

  const [{ headers, body, verified }] = await inbox.wait()
  expect(verified).toBe(true)
  expect(readWebhook(headers, body, secret)).toMatchObject({ event: 'task.completed', task_id: task })
  expect(() => readWebhook(headers, body.replace(task, 'task_other'), secret)).toThrow('wrong signature')
})
