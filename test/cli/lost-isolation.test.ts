import { expect, test } from 'bun:test'
import { chmodSync, chownSync } from 'node:fs'
import { join } from 'node:path'
import { asUser, whyNoOrdinaryUser } from '../support/ordinary-user.ts'
import { command } from '../support/serve.ts'
import { temporaryFolder } from './command.ts'

/** A number that no user has. */
const UNKNOWN = 54_321

const works = (argv: string[]): boolean =>
  Bun.which(argv[0] ?? '') !== null && Bun.spawnSync(argv, { stderr: 'ignore' }).success

const noOther = process.getuid?.() === 0 ? whyNoOrdinaryUser() : 'only root can be another user'
if (noOther !== null) console.error(`SKIP a user without a name: ${noOther}`)

const nesting = [
  'setpriv',
  '--no-new-privs',
  process.execPath,
  join(import.meta.dir, '../support/without-isolation.ts'),
]
const nested = (command: string[]): string[] => [...nesting, ...command]
const canNest = works(nested(['true']))
if (!canNest) console.error('SKIP a machine without isolation: needs setpriv, and Landlock of Linux 5.19')

/** Runs `berth run --json -- true` behind another command; tells the ready line's isolation, and the rest of the error output. */
async function runBehind(
  behind: (command: string[]) => string[],
  path: string,
  env: Record<string, string>,
  more: string[] = [],
) {
  const child = Bun.spawn(behind([...command, 'run', '--json', ...more, '--', 'true']), {
    cwd: path,
    env: { PATH: process.env.PATH ?? '', TMPDIR: path, XDG_STATE_HOME: join(path, 'state'), ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [stderr, exitCode] = await Promise.all([child.stderr.text(), child.exited])
  const lines = stderr.split('\n')
  const ready = lines.find((line) => line.startsWith('{"event":"ready"')) ?? '{}'
  const rest = lines.filter((line) => line !== ready).join('\n')
  return { exitCode, isolation: (JSON.parse(ready) as { isolation?: string }).isolation, rest }
}

test.skipIf(noOther !== null)(
  'a user without a name and without a home has the isolation that all have',
  async () => {
    using here = temporaryFolder()
    chmodSync(here.path, 0o777)
    chownSync(here.path, UNKNOWN, UNKNOWN)
    const usual = await runBehind((one) => asUser(one), here.path, { HOME: here.path })
    expect(await runBehind((one) => asUser(one, UNKNOWN), here.path, {})).toEqual(usual)
    expect(usual.rest).toBe('')
  },
)

test.skipIf(!canNest)(
  'servers without isolation have to be asked for, and the refusal says how',
  async () => {
    using here = temporaryFolder()
    const without = { DOCKER_HOST: `unix://${here.path}/docker.sock` }
    for (const args of [[], ['--compute', 'local']]) {
      const lost = await runBehind(nested, here.path, without, args)
      expect(lost).toMatchObject({ exitCode: 1, isolation: undefined })
      expect(lost.rest).toContain('Nothing isolates servers here. bubblewrap: ')
      expect(lost.rest).toContain('--compute local --isolation none')
    }
    const meant = await runBehind(nested, here.path, {}, ['--isolation', 'none'])
    expect(meant).toEqual({ exitCode: 0, isolation: 'none', rest: '' })
  },
)
