import { afterAll, beforeAll, expect, test } from 'bun:test'
import { command as berthCommand } from '../support/serve.ts'
import { type Served, serve } from './command.ts'
import { onTerminal } from './terminal.ts'

let berth: Served
beforeAll(async () => {
  berth = await serve()
  await berth.server()
})
afterAll(() => berth[Symbol.asyncDispose]())

const GREEN = '\u001b[32mrunning\u001b[0m'

/** What `berth servers` prints on a terminal with these variables. */
async function listed(env: Record<string, string>): Promise<string> {
  await using terminal = onTerminal([...berthCommand, 'servers'], { cwd: berth.cwd, env })
  await terminal.exited
  await terminal.shows('us-east')
  return terminal.output()
}

test('colours stand on a terminal, never with NO_COLOR, never in a pipe', async () => {
  expect(await listed({})).toContain(GREEN)
  expect(await listed({ NO_COLOR: '1' })).not.toContain('\u001b[')
  expect((await berth.run(['servers'])).stdout).not.toContain('\u001b[')
})
