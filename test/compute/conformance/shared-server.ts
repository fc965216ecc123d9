import { afterAll, beforeAll } from 'bun:test'
import type { Sandbox } from '../../../src/compute/sandbox.ts'
import { Bench, type Subject } from '../bench.ts'

/**
 * Starts a server before the tests of a group, and stops it after them: one for tests that look only at what their own
 * command does. The start and the end of a server take longer than most commands.
 *
 * @returns a function that returns the server, for use within the tests
 */
export function sharedServer(name: Subject): () => Sandbox {
  let shared: { bench: Bench; sandbox: Sandbox } | null = null
  beforeAll(async () => {
    const bench = new Bench(name)
    shared = { bench, sandbox: await bench.start() }
  })
  afterAll(() => shared?.bench[Symbol.asyncDispose]())
  return () => {
    if (shared === null) throw new Error('no server was started')
    return shared.sandbox
  }
}
