import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHeartbeat } from '../../src/storage/heartbeat.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-heartbeat-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const skip = !existsSync('/dev/shm')
if (skip) console.error('SKIP the heartbeat: this system has no /dev/shm')

function opened(dir: string) {
  const heartbeat = openHeartbeat(dir)
  if (heartbeat === null) throw new Error('no heartbeat')
  return heartbeat
}

function directory(name: string): string {
  const dir = join(folder, name)
  mkdirSync(dir)
  return dir
}

test.skipIf(skip)(
  'a time outlives the process that noted it, and the move of its directory, and is read once',
  () => {
    const dir = directory('killed')
    const module = JSON.stringify(join(import.meta.dir, '../../src/storage/heartbeat.ts'))
    const script = `const { openHeartbeat } = await import(${module})
    openHeartbeat(${JSON.stringify(dir)}).beat(1234567890123)
    process.kill(process.pid, 'SIGKILL')`
    const { signalCode } = Bun.spawnSync([process.execPath, '-e', script])
    expect(signalCode).toBe('SIGKILL')
    renameSync(dir, `${dir}-moved`)
    const heartbeat = opened(`${dir}-moved`)
    expect([heartbeat.take(), heartbeat.take()]).toEqual([1_234_567_890_123, null])
    heartbeat.close()
  },
)

test.skipIf(skip)('nothing is left by an orderly end, nor by a kill once the directory is gone', () => {
  const gone = directory('gone')
  opened(gone).beat(1)
  rmSync(gone, { recursive: true })
  const heartbeat = opened(directory('next'))
  expect(filesOf(gone)).toEqual([])
  heartbeat.beat(2)
  heartbeat.close()
  expect(filesOf(join(folder, 'next'))).toEqual([])
})

test.skipIf(skip)('what others put beside it keeps nobody waiting, nor is it taken for one', () => {
  const planted = join('/dev/shm', `berth-${process.getuid?.()}-planted`)
  expect(Bun.spawnSync(['mkfifo', planted]).exitCode).toBe(0)
  try {
    const module = JSON.stringify(join(import.meta.dir, '../../src/storage/heartbeat.ts'))
    const script = `const { findAbandonedHeartbeats } = await import(${module})
    console.log(findAbandonedHeartbeats().some(({ path }) => path === ${JSON.stringify(planted)}))`
    // In a process of its own: one that waits for a FIFO can be ended from outside only.
    const { stdout, exitCode } = Bun.spawnSync([process.execPath, '-e', script], {
      timeout: 5_000,
      killSignal: 'SIGKILL',
    })
    expect([exitCode, stdout.toString()]).toEqual([0, 'false\n'])
  } finally {
    rmSync(planted)
  }
})

test.skipIf(skip)('a link that somebody put at its place is not followed', () => {
  const dir = directory('planted')
  const heartbeat = opened(dir)
  const [path = ''] = filesOf(dir)
  heartbeat.close()
  symlinkSync(join(folder, 'elsewhere'), path)
  try {
    expect(openHeartbeat(dir)).toBeNull()
    expect(existsSync(join(folder, 'elsewhere'))).toBe(false)
  } finally {
    rmSync(path)
  }
})

/** The files in memory that name a directory. */
function filesOf(dir: string): string[] {
  const paths = readdirSync('/dev/shm').map((name) => join('/dev/shm', name))
  return paths.filter((path) => Bun.spawnSync(['grep', '-qF', dir, path]).exitCode === 0)
}
