import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findBases } from '../../src/compute/limits/cgroup-layout.ts'
import { chooseLimiter } from '../../src/compute/limits/choose.ts'
import { dataDirectoryGroups, groupName } from '../../src/compute/limits/groups.ts'
import { machineNow } from '../../src/runtime/clock.ts'
import { amidChurn } from '../support/churn.ts'

const LIMITS = { cpus: 1, memoryBytes: 2 ** 28, processes: 64, storageBytes: 2 ** 30 }

/** Data folders of nobody. */
const [OWNER, OTHER] = ['00000000aaaa', '00000000bbbb']

const owner = await chooseLimiter(OWNER, false)
const usesGroups = Object.values(owner.enforced).every((by) => by === 'cgroup')
if (!usesGroups) console.error('SKIP: not all limits are kept by control groups here')

/** The groups of the owner's data folder, in all places where it makes some. */
const parents = [...new Set(Object.values(findBases()).flatMap(([base]) => base?.dir ?? []))].map((base) =>
  join(base, groupName(OWNER)),
)

afterAll(() => {
  for (const parent of parents) {
    for (const group of [join(parent, 'srv_a'), parent]) {
      try {
        rmdirSync(group)
      } catch {}
    }
  }
})

/** Removes groups a few thousand times a second if nothing is in them, until it is killed. */
const REMOVER = `
const { rmdirSync } = require('node:fs')
console.log('begun')
for (;;) for (const group of process.argv.slice(1)) try { rmdirSync(group) } catch {}
`

test('a group does not look old by being removed and made again', async () => {
  const base = mkdtempSync(join(tmpdir(), 'berth-groups-'))
  const begun = machineNow() - 1000
  const old: number[] = []
  await amidChurn(join(base, groupName(OWNER)), ['srv_a/'], () => {
    for (const group of dataDirectoryGroups(base)) {
      const changedAt = group.changedAt()
      if (changedAt < begun) old.push(changedAt)
    }
  })
  rmSync(base, { recursive: true, force: true })
  expect(old).toEqual([])
})

test.skipIf(!usesGroups)('a group is made whose parent others remove while it has none', async () => {
  const remover = Bun.spawn([process.execPath, '-e', REMOVER, ...parents], { stderr: 'inherit' })
  try {
    await remover.stdout.getReader().read()
    for (let round = 0; round < 60; round += 1) await owner.openGroup('srv_a', LIMITS).close()
  } finally {
    remover.kill('SIGKILL')
    await remover.exited
  }
})

test.skipIf(!usesGroups)(
  'a group that a killed berth left long ago is its next owner’s, and no longer abandoned',
  async () => {
    for (const parent of parents) {
      const group = join(parent, 'srv_a')
      mkdirSync(group, { recursive: true })
      for (const path of [group, parent]) utimesSync(path, 0, 0)
    }
    const group = owner.openGroup('srv_a', LIMITS)
    // As every berth does that starts its first server.
    await chooseLimiter(OTHER, false).then((other) => other.sweep([]))
    const inside = Bun.spawn([...group.enter, 'cat', '/proc/self/cgroup'], { stdout: 'pipe' })
    expect(await inside.stdout.text()).toContain(`/${groupName(OWNER)}/srv_a\n`)
    await group.close()
  },
)
