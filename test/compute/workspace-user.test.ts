import { expect, test } from 'bun:test'
import { fileURLToPath } from 'node:url'
import { asUser, whyNoOrdinaryUser } from '../support/ordinary-user.ts'
import { WAYS } from './workspace-fixture.ts'

const ROOT = process.geteuid?.() === 0
const script = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const works = (command: string[]) =>
  Bun.which(command[0] ?? '') !== null && Bun.spawnSync(command, { stderr: 'ignore' }).success

const noUser = whyNoOrdinaryUser()
if (noUser !== null) console.error(`SKIP what modes do: ${noUser}`)

const inSmallDisk = ['unshare', '--mount', ...(ROOT ? [] : ['--map-root-user'])]
const canMount = works([...inSmallDisk, 'mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', '/mnt'])
if (!canMount) console.error('SKIP: a full disk, since no file system can be mounted here')

async function report(command: string[]): Promise<unknown> {
  await using child = Bun.spawn(command, {
    stdout: 'pipe',
    stderr: 'inherit',
    env: { ...process.env, TMPDIR: '/tmp' },
  })
  const text = await child.stdout.text()
  expect(await child.exited).toBe(0)
  return JSON.parse(text)
}

test.skipIf(noUser !== null).each(WAYS)(
  'an ordinary user, %s: closed folders are counted, removed and replaced, modes decide the rest',
  async (kind) => {
    const { uid, ...seen } = (await report(
      asUser([process.execPath, script('workspace-user.ts'), kind]),
    )) as Record<string, unknown>
    expect(uid).not.toBe(0)
    expect(seen).toEqual({
      list: ['open/file', 'readonly/file', 'secret'],
      sameUsage: true,
      modes: ['0', '300', '500'],
      readClosed: 'not_a_file',
      readSecret: 'not_a_file',
      readUnlistable: 'done',
      replaceSecret: 'done',
      secretMode: '0',
      writeReadonly: 'not_a_file',
      removeInReadonly: 'not_a_file',
      removed: ['done', 'done', 'done', 'done', 'done'],
      left: ['open'],
      placed: ['done', 'new', '755', '644'],
    })
  },
)

test.skipIf(!canMount)(
  'a full disk refuses the write, keeps the old file and leaves nothing behind',
  async () => {
    const mount = 'mount -t tmpfs -o size=1m none /mnt && TMPDIR=/mnt exec "$0" "$1"'
    expect(
      await report([...inSmallDisk, 'sh', '-c', mount, process.execPath, script('workspace-full-disk.ts')]),
    ).toEqual({
      fault: 'disk_full',
      names: ['kept'],
      text: 'new',
    })
  },
)
