import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Served, serve, start } from './command.ts'

let berth: Served
beforeAll(async () => {
  berth = await serve(['--isolation', 'none'])
})
afterAll(() => berth[Symbol.asyncDispose]())

/** Follows changes until `use` has seen enough; returns the exit code after Ctrl-C. */
async function follow(args: readonly string[], use: (lines: readonly string[]) => Promise<boolean>) {
  const child = start(['changes', ...args], { cwd: berth.cwd })
  let text = ''
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (await use(text.split('\n').slice(0, -1))) child.kill('SIGINT')
  }
  return child.exited
}

test('changes are printed as lines of JSON, those of the types that are asked for', async () => {
  let created = ''
  const exitCode = await follow(['server', '--json'], async (lines) => {
    if (created === '') {
      expect(lines).toEqual(['{"type":"ready"}'])
      const { stdout } = await berth.run(['servers', 'create', '--task', 'watched', '--json'])
      created = JSON.parse(stdout).id
    }
    const sent = lines.slice(1).map((line) => JSON.parse(line))
    for (const one of sent) expect(one).toMatchObject({ type: 'server', id: created })
    return sent.some(({ value }) => value.task === 'watched')
  })
  expect(exitCode).toBe(130)
})

test('people see a line for each, and what is gone', async () => {
  const { stdout } = await berth.run(['servers', 'create', '--json'])
  const { id } = JSON.parse(stdout)
  let isDeleted = false
  const exitCode = await follow([], async (lines) => {
    if (!isDeleted) await berth.run(['servers', 'delete', id, '--yes'])
    isDeleted = true
    return lines.includes(`server  ${id}  gone`)
  })
  expect(exitCode).toBe(130)
  expect(await berth.run(['changes', 'servers'])).toMatchObject({ exitCode: 2, stdout: '' })
})
