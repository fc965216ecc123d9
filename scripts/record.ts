/**
 * Records the sessions of test/examples/loop.md anew, with dist/berth on a terminal. Leaves those alone that print the same as
 * before, but for ids, ports and times.
 */
import { join } from 'node:path'
import { comparable, sessionsOf, withSessions } from './record/page.ts'
import { SESSIONS, setStage } from './record/sessions.ts'
import { Stage } from './record/stage.ts'

const root = join(import.meta.dir, '..')
const file = join(root, 'test/examples/loop.md')
const page = await Bun.file(file).text()
const before = sessionsOf(page)
const changed = new Map<string, string>()
await using stage = new Stage([join(root, 'dist/berth')], '21100-21199')
await setStage(stage)
for (const { name, cwd, work } of SESSIONS) {
  const text = await stage.record(cwd, (typist) => work(typist, stage))
  if (comparable(text) !== comparable(before.get(name) ?? '')) changed.set(name, text)
}
await Bun.write(file, withSessions(page, changed))
console.error(changed.size === 0 ? 'Nothing has changed.' : `Recorded: ${[...changed.keys()].join(', ')}.`)
