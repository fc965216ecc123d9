import { describe, expect, test } from 'bun:test'
import { berthForTests, testBerth } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { receiver, replyWith } from '../../support/receiver.ts'

const berth = await berthForTests({ flags: { isolation: 'none', 'allow-local-webhooks': true } })
const server = await berth.server()

const wait = (query: string) => berth.control('GET', `/wait?${query}`)

const begin = async (goal: string): Promise<string> =>
  (await berth.call('POST', `/servers/${server}/tasks`, { goal })).body.task_id

const emit = async (event: string) => (await berth.control('POST', '/events', { event })).body

describe('GET /_berth/wait', () => {
  test('a task is waited for until it goes no further by itself, or is in the states that are named', async () => {
    const id = await begin('ask: which?\ncomplete: done')
    const asked = await wait(`task=${id}`)
    expect(asked.status).toBe(200)
    expect(asked.body).toEqual({
      matched: true,
      waited_ms: expect.any(Number),
      task: expect.objectContaining({ id, status: 'awaiting_input', question: 'which?' }),
    })
    const ended = wait(`task=${id}&until=completed,%20failed`)
    await berth.call('POST', `/servers/${server}/tasks/${id}/input`, { answer: 'this' })
    expect((await ended).body).toMatchObject({ matched: true, task: { status: 'completed', result: 'done' } })
    // It is there already.
    expect((await wait(`task=${id}&timeout_ms=0`)).body.matched).toBe(true)
  })

  test('a task that is held is waited for before it is released', async () => {
    await berth.control('PUT', '/scenarios', {
      scenarios: [{ match: 'stand still', steps: [{ ask: 'go?' }, { hold: true }, { fail: 'enough' }] }],
    })
    const id = await begin('stand still')
    await wait(`task=${id}`)
    const held = wait(`task=${id}&until=held`)
    await berth.call('POST', `/servers/${server}/tasks/${id}/input`, { answer: 'yes' })
    const { body } = await held
    expect(body).toMatchObject({ matched: true, task: { status: 'running' } })
    expect((await berth.control('POST', `/tasks/${id}/release`)).status).toBe(200)
    expect((await wait(`task=${id}`)).body.task).toMatchObject({ status: 'failed', result: 'enough' })
    await berth.control('DELETE', '/scenarios')
  })

  test('a build is waited for, from its place in the queue to its end', async () => {
    const built = await berth.server()
    const builds = `/servers/${built}/builds`
    const ids: string[] = []
    for (const goal of ['fail: first', 'fail: second'])
      ids.push((await berth.call('POST', builds, { goal })).body.build_id)
    const [first, second] = ids
    expect((await wait(`build=${second}&until=queued`)).body.build.status).toBe('queued')
    const { body } = await wait(`build=${second}`)
    expect(body).toMatchObject({ matched: true, build: { id: second, status: 'completed', url: null } })
    expect((await wait(`build=${first}&timeout_ms=0`)).body.matched).toBe(true)
    await berth.call('DELETE', `/servers/${built}`)
  }, 120_000)

  test('a project is waited for by its bring-up and by its app', async () => {
    const data = Buffer.from(
      await new Bun.Archive({
        'berth.json': JSON.stringify({ start: 'exec sleep 60', env: { TOKEN: { required: true } } }),
      }).bytes(),
    ).toString('base64')
    const { body: project } = await berth.call('POST', `/servers/${server}/projects`, {
      source: { type: 'archive', data },
    })
    const { body } = await wait(`project=${project.id}`)
    expect(body).toMatchObject({ matched: true, project: { init_phase: 'awaiting_secrets' } })
    const states = wait(`project=${project.id}&until=healthcheck`)
    await berth.call('PUT', `/projects/${project.id}/secrets`, { secrets: { TOKEN: 'x' } })
    expect((await states).body).toMatchObject({
      matched: true,
      project: { id: project.id, runtime_status: 'unbuilt' },
    })
    const gone = wait(`project=${project.id}&until=running`)
    await berth.call('DELETE', `/projects/${project.id}`)
    expect((await gone).status).toBe(404)
  }, 120_000)

  test('waits for a delivery and for its attempts, also with a frozen clock', async () => {
    await using target = await receiver({ reply: replyWith(500) })
    const { body: webhook } = await berth.call('POST', '/webhooks', {
      url: target.url,
      events: ['tuning.started'],
    })
    await berth.control('POST', '/clock', { freeze: true })
    const event = await emit('tuning.started')
    const { deliveries } = (await wait(`deliveries=${event.id}`)).body
    expect(deliveries.map((one: { event_id: string }) => one.event_id)).toEqual([event.id])
    const [{ id }] = deliveries
    const second = wait(`delivery=${id}&attempts=2`)
    await berth.control('POST', '/clock', { advance: '5s' })
    expect((await second).body).toMatchObject({ matched: true, delivery: { id, status: 'pending' } })
    const delivered = wait(`delivery=${id}`)
    target.reply = replyWith(200)
    await berth.control('POST', `/deliveries/${id}/retry`)
    expect((await delivered).body).toMatchObject({ matched: true, delivery: { status: 'delivered' } })
    const other = await emit('tuning.completed')
    expect((await wait(`deliveries=${other.id}`)).body).toMatchObject({ matched: true, deliveries: [] })
    // What the deletion of its webhook takes with it is not waited for.
    target.reply = replyWith(500)
    const last = await emit('tuning.started')
    const [pending] = (await wait(`deliveries=${last.id}`)).body.deliveries
    const gone = wait(`delivery=${pending.id}`)
    await berth.call('DELETE', `/webhooks/${webhook.id}`)
    expect((await gone).status).toBe(404)
    await berth.control('POST', '/clock', { reset: true })
  })

  test('the next event of a name is waited for, and an inbox until it has got enough', async () => {
    const first = await emit('quota.threshold')
    expect((await wait('event=quota.threshold')).body).toMatchObject({ matched: true, event: first })
    expect((await wait('event=quota.threshold&after=start')).body.event).toEqual(first)
    const next = wait(`event=quota.threshold&after=${first.id}`)
    const { body: other } = await berth.control('POST', '/accounts', {})
    const elsewhere = wait(`event=quota.threshold&account_id=${other.id}&timeout_ms=1`)
    await emit('quota.cap_reached')
    const second = await emit('quota.threshold')
    expect((await next).body).toMatchObject({ matched: true, event: second })
    expect((await elsewhere).body).toMatchObject({ matched: false, event: null })
    expect(await wait('event=quota.threshold&account_id=acct_none')).toMatchObject({
      status: 400,
      body: { message: '"account_id" in the query: there is no account "acct_none".' },
    })
    const post = (body: string) =>
      fetch(`${berth.info.base_url}/_berth/inbox/waited`, { method: 'POST', body })
    const two = wait('inbox=waited&count=2')
    await post('1')
    const { entries } = (await wait('inbox=waited&count=2&timeout_ms=0')).body
    expect((await wait('inbox=waited&after=start')).body.entries).toEqual(entries)
    await post('2')
    const both = (await two).body
    expect(both.entries.map((one: { body: string }) => one.body)).toEqual(['2', '1'])
    const after = wait(`inbox=waited&after=${both.entries[0].id}`)
    await post('3')
    expect((await after).body.entries).toMatchObject([{ body: '3' }])
    expect(entries).toMatchObject([{ body: '1' }])
  })

  test('reports the state at the end of the time, by physical time', async () => {
    await berth.control('POST', '/clock', { freeze: true })
    const id = await begin('wait: 1h')
    const { status, body } = await wait(`task=${id}&timeout_ms=50`)
    expect([status, body.matched, body.task.status]).toEqual([200, false, 'running'])
    expect(body.waited_ms).toBeGreaterThanOrEqual(50)
    await berth.control('POST', '/clock', { reset: true })
    const cancelled = wait(`task=${id}`)
    await berth.call('POST', `/servers/${server}/tasks/${id}/cancel`)
    expect((await cancelled).body).toMatchObject({ matched: true, task: { status: 'cancelled' } })
  })

  test('ends with berth, and leaves nothing behind when the client has gone', async () => {
    await using other = await testBerth({ flags: { isolation: 'none', 'log-level': 'debug' } })
    const path = '/_berth/wait?event=task.created&timeout_ms=600000'
    const headers = { authorization: `Bearer ${other.info.admin_token}` }
    // One may be given up before it has come; one that waits ends with its client, as the log says.
    await until(async () => {
      const giveUp = new AbortController()
      const abandoned = other.fetch(path, { headers, signal: giveUp.signal })
      await other.control('GET', '/wait?event=task.created&timeout_ms=0')
      giveUp.abort()
      await abandoned.catch(() => {})
      return /path=\/_berth\/wait status=503/.test(other.log())
    }, 'what was waited for is given up')
    const open = other.fetch(path, { headers })
    for (const _ of [1, 2]) await other.control('GET', '/wait?event=task.created&timeout_ms=0')
    await other.stop()
    const answer = await open
    expect([answer.status, (await answer.json()) as object]).toMatchObject([
      503,
      { error: 'service_unavailable' },
    ])
    expect(other.log()).not.toContain('cut off')
  })

  test('takes no API key', async () => {
    expect((await berth.call('GET', '/_berth/wait?event=task.created')).status).toBe(401)
  })
})
