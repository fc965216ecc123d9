import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { surveyDirectory } from '../../src/cli/directory/survey.ts'
import { findLeaks } from '../../src/cli/leaks.ts'
import { readPrivateFile } from '../../src/cli/login/private-file.ts'
import { ServerDirectories } from '../../src/compute/local/server-directories.ts'
import { removeAbandoned } from '../../src/instance/abandoned.ts'
import { SourceError } from '../../src/resources/projects/sources/errors.ts'
import { findRepository } from '../../src/resources/projects/sources/git/local-repository.ts'
import { machineNow } from '../../src/runtime/clock.ts'
import { JsonReader } from '../../src/runtime/validation/json-reader.ts'
import { ValidationError } from '../../src/runtime/validation/validation-error.ts'
import { isInUse } from '../../src/storage/data-directory.ts'
import { markText, ownMark } from '../../src/system/process-mark.ts'
import { readFiles } from '../../src/testing/seed/resolve.ts'
import { Snapshots } from '../../src/testing/snapshots/snapshots.ts'
import { amidChurn } from '../support/churn.ts'

let folder = ''
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'berth-vanishing-')))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})

const at = (path: string): string => join(folder, path)

/** The name of a temporary folder of a berth that was killed: no process has started in the tick 1. */
const abandonedName = (): string => {
  const mark = ownMark()
  if (mark === null) throw new Error('no /proc')
  return `berth-ephemeral-${markText({ ...mark, start: '1' })}-abcdef`
}

describe('what another process removes meanwhile is passed over:', () => {
  test('a temporary folder that another berth removes too', async () => {
    await amidChurn(at(abandonedName()), ['lock', 'servers/'], () => removeAbandoned(folder, machineNow()))
  })

  test('a data folder, whether or not it has a lock, which is not made', async () => {
    await amidChurn(at('data'), ['lock'], () => isInUse(at('data')))
    mkdirSync(at('without'))
    expect(isInUse(at('without'))).toBe(false)
    expect(existsSync(at('without/lock'))).toBe(false)
  })

  test('whatever leaks are looked for in', async () => {
    const scope = { env: { XDG_STATE_HOME: at('state') }, cwd: folder, data: at('data') }
    await amidChurn(
      at('data'),
      ['lock', 'servers/srv_a/staging/', 'snapshots/'],
      () => findLeaks(scope),
      2_000,
    )
  })

  test('the folders of servers, and what is prepared for them', async () => {
    const folders = new ServerDirectories(folder)
    const handle = await folders.create('srv_a')
    const left = '.berth-1-0123456789abcdef.tmp'
    await amidChurn(at('servers/srv_a/staging'), [`${left}/`], () => folders.takeStock([handle]).remove())
  })

  test('the folder of snapshots', async () => {
    const snapshots = new Snapshots(folder)
    await amidChurn(at('snapshots'), ['one/', 'one/snapshot.json'], () => snapshots.list())
  })

  test('a folder of sources that is sent to a server', async () => {
    mkdirSync(at('app'))
    writeFileSync(at('app/kept'), '')
    await amidChurn(at('app/build'), ['a', 'b/', 'b/c'], async () => {
      const { files } = await surveyDirectory(at('app'))
      expect(files.map(({ path }) => path)).toContain('kept')
    })
  })

  test('the file of keys', async () => {
    chmodSync(folder, 0o700)
    await amidChurn(at('berth'), ['credentials.json'], () => {
      const text = readPrivateFile(at('berth/credentials.json'))
      if (text !== null && text !== '') expect(text).toBe('{}')
    })
  })

  test('a folder that holds a repository', async () => {
    mkdirSync(at('code'))
    await amidChurn(at('code/repository'), ['.git/'], () =>
      onlyRefusals(SourceError, () => findRepository(at('code/repository'), [at('code')])),
    )
  })

  test('a folder that a fixtures file names, as far as a mistake tells', async () => {
    const files = new JsonReader({ app: { from: 'app' } }, ['files'])
    await amidChurn(at('app'), ['a', 'b/', 'b/c'], () =>
      onlyRefusals(ValidationError, () => readFiles(files, at('fixtures.json'))),
    )
  })
})

/** Runs an operation that may refuse, by an error of a kind, and may not fail in another way. */
function onlyRefusals(kind: new (...args: never[]) => Error, operation: () => unknown): void {
  try {
    operation()
  } catch (error) {
    if (!(error instanceof kind)) throw error
  }
}
