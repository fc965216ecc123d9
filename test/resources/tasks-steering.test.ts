import { describe, expect, test } from 'bun:test'
import { berthForTests } from '../support/berth.ts'
import { until } from '../support/processes.ts'
import { setScenarios, TaskCalls } from '../support/tasks.ts'

const berth = await berthForTests()
const tasks = new TaskCalls(berth, await berth.server())

const MISSING = 'task_00000000000000000000000000'

/** Processes of the server whose command line a regular expression matches; it does not match itself. */
const processesWith = async (pattern: string): Promise<string> =>
  (await berth.exec(tasks.serverId, `grep -la '${pattern}' /proc/[0-9]*/cmdline 2>/dev/null || true`)).stdout

const typesOf = async (id: string): Promise<string[]> =>
  (await tasks.events(id)).map(({ type, status }) => (type === 'status' ? status : type))

describe('answer', () => {
  test('a question is answered, and the task goes on with the answer', async () => {
    await setScenarios(berth, [
      {
        match: 'colours',
        steps: [
          { ask: { question: 'Which colour?', as: 'colour' } },
          { ask: { question: 'Is {{colour}} final?', as: 'sure' } },
          { complete: '{{colour}}, {{sure}}' },
        ],
      },
    ])
    const id = await tasks.begin('colours')
    expect(await tasks.reaches(id, 'awaiting_input')).toMatchObject({ question: 'Which colour?' })
    expect('result' in (await tasks.get(id))).toBe(false)
    const answered = await tasks.answer(id, 'blue\nor so')
    expect(answered.status).toBe(200)
    expect(answered.body.task).toMatchObject({ id, status: 'running' })
    expect('question' in answered.body.task).toBe(false)
    await until(async () => (await tasks.get(id)).question === 'Is blue\nor so final?', 'it asks again')
    expect((await tasks.answer(id, '')).status).toBe(200)
    const task = await tasks.ends(id)
    expect(task).toMatchObject({ status: 'completed', result: 'blue\nor so, ' })
    expect('question' in task).toBe(false)
    expect(await typesOf(id)).toEqual([
      'running',
      'notice',
      'question',
      'awaiting_input',
      'answer',
      'running',
      'question',
      'awaiting_input',
      'answer',
      'running',
      'completed',
    ])
  })

  test('the second answer to one question, and one to a task that asks nothing, are 400', async () => {
    const id = await tasks.begin('ask: Now?\nrun: until [ -e answered ]; do sleep 0.02; done')
    await tasks.reaches(id, 'awaiting_input')
    const both = await Promise.all([tasks.answer(id, 'first'), tasks.answer(id, 'second')])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 400])
    const late = await tasks.answer(id, 'third')
    expect([late.status, late.body.error]).toEqual([400, 'bad_request'])
    expect(late.body.message).toContain('running')
    await berth.exec(tasks.serverId, 'touch answered')
    await tasks.ends(id)
    const over = await tasks.answer(id, 'fourth')
    expect(over.status).toBe(400)
    expect(over.body.message).toContain('completed')
    expect((await tasks.events(id)).filter(({ type }) => type === 'answer')).toHaveLength(1)
  })

  test('to a task of another server, of none, and of a wrong shape it changes nothing', async () => {
    const id = await tasks.begin('ask: Here?')
    await tasks.reaches(id, 'awaiting_input')
    const other = new TaskCalls(berth, await berth.server())
    expect((await other.answer(id, 'x')).status).toBe(404)
    expect((await tasks.answer(MISSING, 'x')).status).toBe(404)
    for (const wrong of [undefined, 5, null, 'a'.repeat(1024 * 1024 + 1)])
      expect((await tasks.answer(id, wrong)).status).toBe(400)
    expect(await tasks.get(id)).toMatchObject({ status: 'awaiting_input', question: 'Here?' })
    expect((await tasks.answer(id, 'a'.repeat(1024 * 1024))).status).toBe(200)
    await tasks.ends(id)
  })
})

describe('cancel', () => {
  test('while a command runs, its processes are gone when the call is answered', async () => {
    const id = await tasks.begin('run: sh -c "sleep 98.7654 & sleep 98.7654"')
    await until(async () => (await processesWith('98[.]7654')) !== '', 'the command runs')
    const { status, body } = await tasks.cancel(id)
    expect(status).toBe(200)
    expect(body.task).toMatchObject({ id, status: 'cancelled' })
    expect('result' in body.task).toBe(false)
    expect(await processesWith('98[.]7654')).toBe('')
    expect((await typesOf(id)).at(-1)).toBe('cancelled')
  })

  test('while it waits for an answer, the question goes', async () => {
    const id = await tasks.begin('ask: Really?\nwrite: no.txt <<< x')
    await tasks.reaches(id, 'awaiting_input')
    const { body } = await tasks.cancel(id)
    expect(body.task.status).toBe('cancelled')
    expect('question' in body.task).toBe(false)
    expect((await tasks.answer(id, 'yes')).status).toBe(400)
    expect((await berth.call('GET', `/servers/${tasks.serverId}/files?path=no.txt`)).status).toBe(404)
  })

  test('while it is held and while it waits for time to pass', async () => {
    await setScenarios(berth, [{ match: 'held', steps: [{ hold: true }] }])
    const held = await tasks.begin('held')
    await until(async () => (await typesOf(held)).includes('notice'), 'it is under way')
    const waits = await tasks.begin('wait: 1h')
    for (const id of [held, waits]) {
      expect((await tasks.cancel(id)).body.task.status).toBe('cancelled')
      expect((await typesOf(id)).at(-1)).toBe('cancelled')
    }
    expect((await berth.control('POST', `/tasks/${held}/release`)).status).toBe(400)
  })

  test('again it stays cancelled, and nothing is added', async () => {
    const id = await tasks.begin('ask: Well?')
    const both = await Promise.all([tasks.cancel(id), tasks.cancel(id)])
    const again = await tasks.cancel(id)
    for (const { status, body } of [...both, again])
      expect([status, body.task.status]).toEqual([200, 'cancelled'])
    expect((await typesOf(id)).filter((type) => type === 'cancelled')).toHaveLength(1)
    expect(await tasks.told(id)).toEqual(['task.created'])
  })

  test.each([
    ['complete: x', 'completed'],
    ['fail: x', 'failed'],
  ])('after "%s" it is refused with 400, and changes nothing', async (goal, status) => {
    const before = await tasks.run(goal)
    const refused = await tasks.cancel(before.id)
    expect([refused.status, refused.body.error]).toEqual([400, 'bad_request'])
    expect(refused.body.message).toContain(status)
    expect(await tasks.get(before.id)).toEqual(before)
    expect((await tasks.cancel(MISSING)).status).toBe(404)
  })

  test('what was done before stays, and other tasks of the server go on', async () => {
    const other = await tasks.begin('run: until [ -e on ]; do sleep 0.02; done\ncomplete: went on')
    const id = await tasks.begin('write: kept.txt <<< kept\nask: More?')
    await tasks.reaches(id, 'awaiting_input')
    await tasks.cancel(id)
    expect((await berth.exec(tasks.serverId, 'cat kept.txt; touch on')).stdout).toBe('kept')
    expect((await tasks.ends(other)).result).toBe('went on')
  })
})
