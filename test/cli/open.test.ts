import { expect, test } from 'bun:test'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Visitor } from '../support/visitor.ts'
import { run, serveForTests, temporaryFolder } from './command.ts'

const berth = await serveForTests(['--isolation', 'none'])

const visit = (url: string) => new Visitor(berth.info.base_url).get(url)
const isLink = (text: string): boolean => text.startsWith(`${berth.info.base_url}/signin/link/`)

test.skipIf(process.platform !== 'linux')(
  'berth open shows a browser the page, signed in, and says nothing of the link',
  async () => {
    using folder = temporaryFolder()
    const program = join(folder.path, 'xdg-open')
    writeFileSync(program, `#!/bin/sh\nprintf %s "$*" > "${folder.path}/shown"\n`)
    chmodSync(program, 0o755)
    const env = { DISPLAY: ':99', PATH: `${folder.path}:${process.env.PATH}` }
    const { exitCode, stdout, stderr } = await berth.run(['open'], { env })
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 0,
      stdout: `Opened ${berth.info.base_url} in the browser. If none appears: berth open --print\n`,
      stderr: '',
    })
    const shown = readFileSync(join(folder.path, 'shown'), 'utf8')
    expect(isLink(shown)).toBe(true)
    expect(await visit(shown)).toMatchObject({ status: 303, location: '/' })
  },
)

test('berth open prints the link where there is no browser, and with --print in any case', async () => {
  const { exitCode, stdout, stderr } = await berth.run(['open'])
  expect([exitCode, stderr]).toEqual([
    0,
    'berth: no browser was found here. Open this within five minutes:\n',
  ])
  expect((await visit(stdout.trim())).status).toBe(303)
  const printed = await berth.run(['open', '--print', '--page', '/docs?x=y'])
  expect([printed.exitCode, printed.stderr]).toEqual([0, ''])
  expect(isLink(printed.stdout)).toBe(true)
  expect((await visit(printed.stdout.trim())).location).toBe('/docs?x=y')
})

test('berth open --json prints the answer, for the account that is named', async () => {
  const created = await berth.run(['accounts', 'create', '--label', 'Ann', '--json'])
  const { id } = JSON.parse(created.stdout)
  const before = Date.now()
  const { stdout } = await berth.run(['open', '--account', id, '--json'])
  const { url, expires_at } = JSON.parse(stdout)
  expect(Date.parse(expires_at) - 300_000).toBeWithin(before, Date.now() + 1)
  const ann = new Visitor(berth.info.base_url)
  await ann.get(url)
  expect((await ann.get('/access')).text).toContain(id)
})

test.each([[['--account', 'acct_none'], 'The account "acct_none" does not exist.']])(
  'berth open %j is refused',
  async (args, message) => {
    const { exitCode, stdout, stderr } = await berth.run(['open', ...args])
    expect([exitCode, stdout]).toEqual([1, ''])
    expect(stderr).toContain(message)
  },
)

test.each(['docs', '//evil.example', '/\\evil.example', '', 'http://evil.example/'])(
  'the page %p is not a path, and is named as typed before anything is requested',
  async (page) => {
    using folder = temporaryFolder()
    const { exitCode, stdout, stderr } = await run(['open', '--page', page], { cwd: folder.path })
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`in --page, got ${JSON.stringify(page)}.`)
  },
)

test('serve and serve --detach print a link that signs in, for people', async () => {
  using folder = temporaryFolder()
  const { stdout } = await run(['serve', '--detach', '--port', '0', '--isolation', 'none'], {
    cwd: folder.path,
  })
  try {
    const [, url = ''] = /^ {2}Sign in +(http:\S+) {2}\(once, within an hour\)$/m.exec(stdout) ?? []
    const [, mcp = ''] = /^ {2}MCP +(http:\S+) {2}\(the address for coding assistants\)$/m.exec(stdout) ?? []
    expect(mcp).toBe(`${new URL(url).origin}/mcp`)
    expect(await visit(url)).toMatchObject({ status: 303, location: '/' })
    expect((await visit(url)).status).toBe(410)
    const log = readFileSync(join(folder.path, '.berth/berth.log'), 'utf8')
    expect(log).not.toContain('/signin/link/')
  } finally {
    await run(['stop'], { cwd: folder.path })
  }
})
