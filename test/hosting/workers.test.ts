import { expect, test } from 'bun:test'
import { workerPrograms } from '../../src/hosting/app-runtime/process.ts'
import { Workers } from '../../src/hosting/workers.ts'
import { until } from '../compute/bench.ts'
import { planOf, World } from './app-runtime/world.ts'

/** The workers of an app, with its commands, and what they do now. */
async function workersIn(world: World, steadyMs = 100) {
  const workers = new Workers({
    owner: { kind: 'project', id: 'app' },
    ...{ cwd: '', clock: world.clock, ports: world.ports, log: await world.log() },
    ...{ workspace: () => world.workspace, slugOf: () => null, onState() {} },
    timing: { steadyMs },
  })
  const run = (commands: Record<string, string>, isOnlyTry = false) =>
    workers.run(world.sandbox, workerPrograms(planOf('', { workers: commands }), {}), isOnlyTry)
  const become = (status: string) =>
    until(`a worker to be ${status}`, () => workers.list().some((one) => one.status === status))
  return { workers, run, become }
}

test('a worker that crashes is started again after growing delays by the clock, then no more', async () => {
  await using world = await World.open()
  // As long as a busy machine takes for a command.
  const { workers, run, become } = await workersIn(world, 2_000)
  expect(await run({ mail: 'exit 4' })).toHaveLength(1)
  for (const [restarts, delayMs] of [1000, 2000, 4000, 8000, 16_000].entries()) {
    await become('restarting')
    expect(workers.list()).toEqual([
      { name: 'mail', command: 'exit 4', status: 'restarting', exitCode: 4, restarts: restarts + 1 },
    ])
    expect(workers.areUp).toBeTrue()
    await world.clock.advance(delayMs)
  }
  await become('failed')
  expect(workers.list()).toMatchObject([{ status: 'failed', exitCode: 4, restarts: 5 }])
  expect(workers.areUp).toBeFalse()
  expect(workers.failures).toEqual([
    'The worker "mail" does not run: it ended with exit code 4. Nothing starts it again.',
  ])
  // Another version begins anew.
  expect(await run({ mail: 'sleep 300' })).toEqual([])
  expect(workers.list()).toMatchObject([{ status: 'running', exitCode: null, restarts: 0 }])
})

test('a worker that ends with exit code 0, soon or later, is not started again', async () => {
  await using world = await World.open()
  const { workers, run, become } = await workersIn(world)
  expect(await run({ soon: 'true', later: 'sleep 1' })).toEqual([])
  await until('both to end', () => workers.list().every(({ status }) => status === 'stopped'))
  expect(workers.list()).toMatchObject([{ exitCode: 0 }, { exitCode: 0 }])
  expect(workers.failures).toEqual([])
  expect(run({ other: 'sleep 300' })).resolves.toEqual([])
  await become('running')
  await workers.stop()
  expect(workers.list()).toMatchObject([{ name: 'other', status: 'stopped', exitCode: null }])
  expect(await world.bench.commands()).toEqual([])
})

test('those that a version has no more end before its own start', async () => {
  await using world = await World.open()
  const { workers, run } = await workersIn(world)
  await run({ a: 'sleep 301', b: 'sleep 302' })
  await run({ b: 'sleep 303', c: 'sleep 304' })
  expect(workers.list().map(({ name }) => name)).toEqual(['b', 'c'])
  const commands = (await world.sandbox.processes()).map(({ command }) => command).join('\n')
  expect(commands).toContain('sleep 303')
  expect(commands).not.toMatch(/sleep 30[12]/)
})

test('the only try of a worker that crashes is not repeated, and the error names the cause', async () => {
  await using world = await World.open()
  await world.write('app', { 'work.sh': '#!/bin/sh\r\n' })
  const { workers, run } = await workersIn(world)
  const [error] = await run({ work: 'chmod +x app/work.sh; app/work.sh' }, true)
  expect(String(error)).toContain(
    'The worker "work" did not start: it ended with exit code 127. app/work.sh has Windows',
  )
  expect(workers.list()).toMatchObject([{ status: 'failed', exitCode: 127, restarts: 0 }])
})
