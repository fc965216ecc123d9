import { expect, test } from 'bun:test'
import { testBerth } from '../support/berth.ts'
import { until } from '../support/processes.ts'
import { setScenarios, TaskCalls } from '../support/tasks.ts'

/** All that the API says of the same tasks, done on a berth of its own. */
async function told(): Promise<string> {
  await using berth = await testBerth({ flags: { 'rng-seed': '7', freeze: '2030-01-01T00:00:00Z' } })
  const tasks = new TaskCalls(berth, await berth.server())
  await setScenarios(berth, [
    {
      match: { glob: 'ship *' },
      steps: [
        { ask: { question: 'Ship it?', as: 'sure' } },
        { wait: '10m' },
        { run: 'seq 3; ls' },
        { complete: 'shipped: {{sure}}' },
      ],
    },
  ])
  await tasks.run('write: a.txt <<< a\nwrite: b/c.txt <<< c\nrun: cat a.txt b/c.txt')
  await tasks.run('run: echo out; echo err >&2; exit 3')
  await tasks.run('just do it')
  const id = await tasks.begin('ship it now')
  await tasks.reaches(id, 'awaiting_input')
  const timers = async (): Promise<number> => (await berth.control('GET', '/clock')).body.timers
  const before = await timers()
  await tasks.answer(id, 'yes')
  await until(async () => (await timers()) > before, 'it waits')
  await berth.control('POST', '/clock', { advance: '10m' })
  await tasks.ends(id)
  await tasks.cancel(await tasks.begin('ask: Well?'))
  const bodies = [await tasks.list()]
  const texts = []
  for (const { id } of await tasks.list()) {
    bodies.push([await tasks.get(id)])
    texts.push(await (await berth.fetch(`${tasks.path}/${id}/events`)).text())
  }
  return [JSON.stringify(bodies), ...texts].join('\n')
}

test('with a seed and a stopped clock, the same tasks have the same bytes', async () => {
  const [first, second] = [await told(), await told()]
  expect(second).toBe(first)
  for (const said of ['shipped: yes', '"stdout":"1\\n2\\n3\\n', 'exit code 3', '"status":"cancelled"'])
    expect(first).toContain(said)
})
