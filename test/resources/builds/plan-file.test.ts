import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { isUnmodifiedPlan, PlanFile } from '../../../src/resources/builds/plan/file.ts'
import { World } from '../../hosting/app-runtime/world.ts'

let world: World
beforeAll(async () => {
  world = await World.open()
})
afterAll(() => world[Symbol.asyncDispose]())
beforeEach(async () => {
  await shell('find . -mindepth 1 -delete')
})

const shell = (command: string) => world.sandbox.exec({ command, timeoutMs: 10_000, onOutput() {} }).exit

const choose = (id = 'bld_one') => PlanFile.create(world.workspace, id)
const put = (path: string, text: string) => world.workspace.write(path, new TextEncoder().encode(text))
const textOf = async (path: string) => new TextDecoder().decode(await world.workspace.read(path))

test('a plan that berth left gives way to the next one', async () => {
  await (await choose('bld_one')).write('# First', '')
  expect(await isUnmodifiedPlan(world.workspace, 'PLAN.md')).toBe(true)
  const second = await choose('bld_two')
  expect(second.path).toBe('PLAN.md')
  await second.write('# Second', '')
  expect(await textOf('PLAN.md')).toMatch(
    /^# Second\n\n<!-- berth wrote this for bld_two; [0-9a-f]{16} -->\n$/,
  )
})

test('what anybody else wrote stays: their own plan, one that was changed, one that only looks like it', async () => {
  await put('PLAN.md', 'mine')
  await (await choose()).write('# Plan', '')
  expect(await textOf('PLAN.md')).toBe('mine')
  await put('PLAN-2.md', `${await textOf('PLAN-2.md')}`.replace('# Plan', '# Changed'))
  expect(await isUnmodifiedPlan(world.workspace, 'PLAN-2.md')).toBe(false)
  await put('PLAN-3.md', 'x\n\n<!-- berth wrote this for bld_x; 0123456789abcdef -->\n')
  const next = await choose()
  expect(next.path).toBe('PLAN-4.md')
})

test('a folder of that name, or a link that leads out, is passed by', async () => {
  await put('PLAN.md/inside', 'x')
  await shell('ln -s /etc/hostname PLAN-2.md; ln -s nowhere PLAN-3.md')
  expect((await choose()).path).toBe('PLAN-4.md')
})

test('it is brought up to date whole; where somebody changed it meanwhile, only what is new is added', async () => {
  const plan = await choose()
  await plan.write('# Plan', '')
  await plan.write('# Plan\n\n## News', '## News')
  expect(await textOf('PLAN.md')).toMatch(/^# Plan\n\n## News\n\n<!--/)
  await put('PLAN.md', '# Plan\n\n- [x] what the agent has ticked off\n')
  await plan.write('# Plan\n\n## News\n\n## More', '## News\n\n## More')
  expect(await textOf('PLAN.md')).toMatch(
    /^# Plan\n\n- \[x\] what the agent has ticked off\n\n## News\n\n## More\n\n<!--/,
  )
  expect(await isUnmodifiedPlan(world.workspace, 'PLAN.md')).toBe(true)
  // What comes later adds to it too, each piece of news once.
  await plan.write('# Plan\n\n## News\n\nmore', '## News\n\nmore')
  expect(await textOf('PLAN.md')).toMatch(
    /^# Plan\n\n- \[x\] what the agent has ticked off\n\n## News\n\nmore\n\n<!--/,
  )
  await put('PLAN.md', `Mine. ${await textOf('PLAN.md')}`)
  await plan.write('# Plan\n\n## News\n\nmost', '## News\n\nmost')
  expect(await textOf('PLAN.md')).toMatch(
    /^Mine\. # Plan\n\n- \[x\] what the agent has ticked off\n\n## News\n\nmost\n\n<!--/,
  )
})

test('one that was removed is written again', async () => {
  const plan = await choose()
  await plan.write('# Plan', '')
  await world.workspace.remove('PLAN.md')
  await plan.write('# Plan\n\n## News', '## News')
  expect(await textOf('PLAN.md')).toStartWith('# Plan\n\n## News\n')
})
