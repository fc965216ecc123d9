import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyTrees } from '../../src/storage/files.ts'

test('a copy is given up when berth is to end, before it and amid it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-copy-'))
  try {
    const [from, to] = [join(folder, 'from'), join(folder, 'to')]
    for (const path of [from, to]) mkdirSync(path)
    for (let n = 0; n < 2_000; n += 1) writeFileSync(join(from, String(n)), '')
    const stopping = new AbortController()
    const copy = () => copyTrees([from], to, stopping.signal).catch(({ code }) => code)
    const amid = copy()
    stopping.abort()
    expect(await Promise.all([amid, copy()])).toEqual(['service_unavailable', 'service_unavailable'])
    rmSync(join(to, 'from'), { recursive: true, force: true })
    await copyTrees([from], to)
    expect(readdirSync(join(to, 'from')).length).toBe(2_000)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
