import { afterAll, beforeAll, beforeEach } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Outcome, type RunOptions, type Served, serve } from './command.ts'

/** Provides a directory and a server to the tests of a file, between which they copy. Both are empty before each test. */
export function copies() {
  let berth: Served
  let server: string
  let dir: string
  const onServer = async (command: string): Promise<string> =>
    (await berth.run(['exec', server, command])).stdout
  beforeAll(async () => {
    berth = await serve()
    server = await berth.server()
    dir = mkdtempSync(join(tmpdir(), 'berth-copies-'))
  })
  afterAll(async () => {
    rmSync(dir, { recursive: true, force: true })
    await berth[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    rmSync(dir, { recursive: true, force: true })
    mkdirSync(dir)
    await onServer('chmod -R u+w . ; find . -mindepth 1 -delete')
  })
  const words = (command: string, ...args: string[]): string[] => [
    ...[command, '--data', join(berth.cwd, '.berth')],
    ...args,
  ]
  return {
    berth: () => berth,
    server: () => server,
    /** Returns a path below the directory. */
    here: (path = ''): string => join(dir, path),
    /** Returns a path of the server, as commands name it. */
    at: (path: string): string => `${server}:${path}`,
    /** Returns the arguments of a command for the instance, wherever it runs. */
    words,
    /** Runs a command in the directory. */
    run: (args: readonly string[], options?: RunOptions): Promise<Outcome> =>
      berth.run(words(args[0] ?? '', ...args.slice(1)), { cwd: dir, ...options }),
    /** Returns the output of a command on the server. */
    onServer,
  }
}
