import { expect, test } from 'bun:test'
import { describedControl } from '../../../src/instance/describe.ts'
import { CONTROL_GROUPS, type ControlGroup, controlGroupOf } from '../../../src/testing/api/groups.ts'

test('a path of the control API leads to the group of routes that has it', async () => {
  const astray: string[] = []
  let count = 0
  for (const group of Object.keys(CONTROL_GROUPS) as ControlGroup[]) {
    for (const { path } of (await describedControl([group])).routes) {
      count += 1
      const found = controlGroupOf(`http://127.0.0.1:4747${path.replaceAll(/:\w+/g, 'x')}?tail=/_berth/clock`)
      if (found !== group) astray.push(`${path}: ${found}, not ${group}`)
    }
  }
  expect(astray).toEqual([])
  expect(count).toBe((await describedControl()).routes.length)
})

test.each([
  '/_berth',
  '/_berth/',
  '/_berth/nowhere',
  '/_berth/constructor',
  '/_berth/servers',
  '/_berth/clock/x',
])('%s is not a path of any group', async (path) => {
  const { routes } = await describedControl([controlGroupOf(`http://127.0.0.1:4747${path}`)])
  expect(routes.map((route) => route.path)).not.toContain(path)
})
