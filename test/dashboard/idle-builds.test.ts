import { expect, test } from 'bun:test'
import { browserPath } from '../support/browser.ts'
import { dashboardTests } from '../support/dashboard.ts'

if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

const tests = dashboardTests()

test.skipIf(browserPath === null)(
  'a build that no agent worked on is not shown as done, and a failed task says why in its list (needs Chromium)',
  async () => {
    const { berth } = tests
    const serverId = await berth.server()
    const { body: built } = await berth.call('POST', `/servers/${serverId}/builds`, { goal: 'A notes page' })
    await berth.control('GET', `/wait?build=${built.build_id}&timeout_ms=60000`)
    const { body } = await berth.call('GET', `/servers/${serverId}/builds/${built.build_id}`)
    const steps = body.build.steps as { key: string; skipped?: boolean }[]
    expect(steps.filter(({ skipped }) => skipped).map(({ key }) => key)).toEqual(['implement'])
    const { body: task } = await berth.call('POST', `/servers/${serverId}/tasks`, {
      goal: 'fail: no disk left',
    })
    await berth.control('GET', `/wait?task=${task.task_id}&timeout_ms=30000`)
    await using watched = await tests.open(`/dashboard/builds/${built.build_id}`)
    const { page, problems } = watched
    await page.getByText('completed, nothing implemented').waitFor()
    expect(await page.locator('.phases .skipped').textContent()).toBe('implement skipped')
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/build.png` })
    await page.goto(new URL('/dashboard/builds', page.url()).href)
    await page.getByText('nothing implemented').waitFor()
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/builds.png` })
    await page.goto(new URL('/dashboard/tasks', page.url()).href)
    await page.getByText('no disk left').nth(1).waitFor()
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/tasks.png` })
    expect(problems).toEqual([])
  },
  90_000,
)
