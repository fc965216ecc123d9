import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Agent } from '../../src/agents/agent.ts'
import { ToolError } from '../../src/agents/workbench/search.ts'
import type { Workbench } from '../../src/agents/workbench/workbench.ts'
import { AgentServer } from '../support/agents.ts'

let server: AgentServer
beforeAll(async () => {
  server = await AgentServer.open()
})
afterAll(() => server[Symbol.asyncDispose]())

/** Has an agent do something with its workbench; resolves with what was reported and what it threw. */
async function using(work: (workbench: Workbench) => Promise<unknown>, variables = {}) {
  let thrown: unknown
  const agent: Agent = {
    async work({ workbench }) {
      await work(workbench).catch((error: unknown) => {
        thrown = error
      })
      return { status: 'completed', result: '' }
    },
  }
  return { ...(await server.work(agent, 'x', { variables })), thrown }
}

test.each(['..', '../..', '/', '/etc', 'nowhere', 'a-file'])(
  'a command in %j, which is no folder of the workspace, is refused and goes on',
  async (cwd) => {
    const { thrown, events } = await using(async (workbench) => {
      await workbench.write('a-file', 'x')
      await workbench.run('pwd', { cwd })
    })
    expect(thrown).toBeInstanceOf(ToolError)
    expect(events.at(-1)).toMatchObject({ type: 'toolResult', tool: 'run', ok: false })
  },
)

test('a command runs in a folder of the workspace, named in either way', async () => {
  for (const cwd of ['app/deep', '/workspace/app/deep', './app/deep/']) {
    const { thrown, events } = await using(async (workbench) => {
      await workbench.write('app/deep/x', 'x')
      await workbench.run('basename "$PWD"', { cwd })
    })
    expect(thrown).toBeUndefined()
    expect(events.at(-1)).toMatchObject({ ok: true, output: { stdout: 'deep\n' } })
  }
})

test('a long output keeps its beginning and its end, and says what is missing', async () => {
  const { events, deltas } = await using((workbench) => workbench.run('echo first; seq 100000; echo last'))
  const end = events.at(-1)
  if (end?.type !== 'toolResult') throw new Error('no result')
  const stdout = String(end.output.stdout)
  expect(stdout.startsWith('first\n')).toBe(true)
  expect(stdout.endsWith('last\n')).toBe(true)
  expect(stdout).toMatch(/\d+ characters are left out here/)
  expect(stdout.length).toBeLessThan(70_000)
  expect(end.output.truncated).toBe(true)
  const shown = deltas.map((delta) => delta.text).join('')
  expect(shown.length).toBeGreaterThan(500_000)
})

test('secrets are masked in what a command prints, also where its pieces cut them', async () => {
  const variables = { TOKEN: 'geheim-und-lang' }
  const command = 'printf "a $TOKEN b "; printf geheim-; sleep 0.05; printf und-lang; printf " c"'
  const { events, deltas } = await using((workbench) => workbench.run(command), variables)
  expect(JSON.stringify([events.at(-1), deltas])).not.toContain('geheim')
  expect(events.at(-1)).toMatchObject({ output: { stdout: 'a *** b *** c' } })
})

test('output that is not UTF-8 is held exactly beside its text, with secrets masked in both', async () => {
  const variables = { TOKEN: 'geheim-und-läng' }
  const command = 'printf "a\\377$TOKEN\\360\\237b"; printf "ok" >&2'
  const { events, deltas } = await using((workbench) => workbench.run(command), variables)
  const end = events.at(-1)
  if (end?.type !== 'toolResult') throw new Error('no result')
  const { stdout, stdoutBase64, ...rest } = end.output
  expect(stdout).toBe('a\ufffd***\ufffdb')
  expect(Buffer.from(String(stdoutBase64), 'base64').toString('latin1')).toBe('a\xff***\xf0\x9fb')
  expect(rest).toMatchObject({ stderr: 'ok' })
  expect(rest).not.toHaveProperty('stderrBase64')
  expect(deltas.map((delta) => delta.text).join('')).toContain('a\ufffd***\ufffdb')
})

test('a cut of a long output never splits a character', async () => {
  // Pairs of UTF-16 units at odd positions, before and behind the cut.
  const { events } = await using((workbench) =>
    workbench.run("printf a; yes '💀💀💀💀💀💀💀' | head -40000 | tr -d '\\n'; printf bc"),
  )
  const end = events.at(-1)
  if (end?.type !== 'toolResult') throw new Error('no result')
  expect(end.output.truncated).toBe(true)
  expect(String(end.output.stdout).isWellFormed()).toBe(true)
  expect(String(end.output.stdout)).toMatch(/^a💀.*💀\n… \(\d+ characters are left out here\)\n💀.*💀bc$/s)
  expect(end.output).not.toHaveProperty('stdoutBase64')
})

test('a search finds lines with their numbers, and reports a bad expression', async () => {
  const found = await using(async (workbench) => {
    await workbench.write('src/a.txt', 'one\ntwo words\nthree')
    await workbench.write('node_modules/b.txt', 'two words')
    const { matches } = await workbench.search('two w[a-z]+', 'src')
    expect(matches).toEqual([{ path: 'src/a.txt', line: 2, text: 'two words' }])
    expect((await workbench.search('two w')).matches).toHaveLength(1)
    expect((await workbench.search('$(touch owned); `touch owned`')).matches).toEqual([])
    expect((await workbench.list()).files).not.toContain('owned')
  })
  expect(found.thrown).toBeUndefined()
  const bad = await using((workbench) => workbench.search('('))
  expect(bad.thrown).toBeInstanceOf(ToolError)
})

test('paths out of the workspace, folders and what is not text are refused', async () => {
  for (const path of ['../x', '/etc/passwd', 'nothing', 'src']) {
    expect((await using((workbench) => workbench.read(path))).thrown).toBeInstanceOf(ToolError)
  }
  const binary = await using(async (workbench) => {
    await workbench.run("printf '\\377\\376' > binary")
    await workbench.read('binary')
  })
  expect(String(binary.thrown)).toContain('binary is not text')
})

test('a secret that goes over the end of what is shown is masked, in files and in what a search finds', async () => {
  const variables = { TOKEN: 'geheim-und-lang-und-geheim' }
  const file = `${'x'.repeat(3_990)} ${variables.TOKEN} und mehr`
  const line = `found ${'x'.repeat(384)} ${variables.TOKEN} und mehr`
  const { events, thrown } = await using(async (workbench) => {
    await workbench.write('cut.txt', file)
    await workbench.read('cut.txt')
    await workbench.write('lines.txt', line)
    const { matches } = await workbench.search('^found', 'lines.txt')
    expect(matches).toMatchObject([{ text: `found ${'x'.repeat(384)} ***` }])
  }, variables)
  expect(thrown).toBeUndefined()
  expect(JSON.stringify(events.slice(0, 4))).not.toContain('geheim')
  expect(events[0]).toMatchObject({ input: { content: `${'x'.repeat(3_990)} ***`, truncated: true } })
  expect(events[3]).toMatchObject({ output: { content: `${'x'.repeat(3_990)} ***`, truncated: true } })
})

test.each([
  ['x'.repeat(200_000), ''],
  ['x', 'y'.repeat(200_000)],
  ['x', 'a\0b'],
  ['x', '..'],
  ['x', 'nowhere'],
  ['x', 'pipe'],
])('a search that cannot be made is refused and goes on (%#)', async (pattern, folder) => {
  const { thrown } = await using(async (workbench) => {
    await workbench.run('[ -p pipe ] || mkfifo pipe')
    await workbench.search(pattern, folder)
  })
  expect(thrown).toBeInstanceOf(ToolError)
})
