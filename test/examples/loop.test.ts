import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { comparable, sessionsOf } from '../../scripts/record/page.ts'
import { SESSIONS, setStage } from '../../scripts/record/sessions.ts'
import { Stage } from '../../scripts/record/stage.ts'
import { projectPorts } from '../support/ports.ts'
import { command } from '../support/serve.ts'

const shown = sessionsOf(await Bun.file(join(import.meta.dir, 'loop.md')).text())

test('the page shows every session once', () => {
  expect([...shown.keys()].sort()).toEqual(SESSIONS.map(({ name }) => name).sort())
})

test('every session of the page is what berth prints on a terminal; "bun scripts/record.ts" records anew', async () => {
  await using stage = new Stage(command, projectPorts())
  await setStage(stage)
  for (const { name, cwd, work } of SESSIONS) {
    const printed = await stage.record(cwd, (typist) => work(typist, stage))
    expect(`${name}\n${comparable(printed)}`).toBe(`${name}\n${comparable(shown.get(name) ?? '')}`)
  }
}, 240_000)

test('a word that berth prints otherwise is found, and ids, ports, times and order are not', () => {
  const one = '$ berth x\nsrv_01m83xrvxmf6h537be9ed9b76b at 127.0.0.1:4800 in 12 ms\n✓ build 1.2 s\nb'
  const other = '$ berth x\nb\nsrv_01m83xrv9st4xpxrt03e1vp2en at 127.0.0.1:4801 in 3.1 s'
  expect(comparable(one)).toBe(comparable(other))
  expect(comparable(one)).not.toBe(comparable(other.replace(' at ', ' on ')))
})
