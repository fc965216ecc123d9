import { expect, test } from 'bun:test'
import { ResizePace } from '../../../src/resources/terminals/resize-pace.ts'

test('sizes that follow each other without end are applied a few times, and the last one always', async () => {
  let newest = 0
  const applied: number[] = []
  const last = Promise.withResolvers<void>()
  const pace = new ResizePace(() => {
    applied.push(newest)
    if (newest === 50_000) last.resolve()
  })
  while (newest < 50_000) {
    newest += 1
    pace.request()
  }
  await last.promise
  expect(applied.slice(0, 3)).toEqual([1, 2, 3])
  // A busy machine takes longer for the loop.
  expect(applied.length).toBeLessThan(200)
  pace.stop()
})
