import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serve as serveProcess } from '../support/serve.ts'
import { serveForTests, start } from './command.ts'

const berth = await serveForTests(['--isolation', 'none'])

test('people get a line for each request, and below it what nothing read', async () => {
  await berth.run(['logs', '--clear'])
  const { stdout } = await berth.run(['servers', 'create'])
  expect(stdout).toContain('srv_')
  await fetch(`${berth.info.base_url}/server`)
  const logs = await berth.run(['logs', '--all'])
  expect(logs.stdout).toMatch(
    /^\d\d:\d\d:\d\d {2}201 +\d+ ms {2}POST {4}\/servers {2}servers\.create {2}cli\n/,
  )
  expect(logs.stdout).toMatch(
    /\n\d\d:\d\d:\d\d {2}404 +\d+ ms {2}GET {5}\/server {2}\n {10}\/server: .*GET \/servers/,
  )
  expect((await berth.run(['logs', '--status', '4xx', '--json'])).stdout.trim().split('\n')).toHaveLength(1)
  expect((await berth.run(['logs', '--all', '--bodies', '--method', 'post'])).stdout).toContain(
    '"status": "running"',
  )
  expect((await berth.run(['logs', '--status', 'x'])).stderr).toContain('expected a status such as 404')
})

test('shows the faults that applied below, and headers on request, with credentials masked', async () => {
  const added = await berth.run([
    'faults',
    'add',
    '--respond',
    '502',
    '--content-type',
    'text/html',
    '--json',
  ])
  const { id } = JSON.parse(added.stdout)
  const headers = { authorization: `Bearer ${berth.info.api_key}`, 'x-note': 'mine' }
  await fetch(`${berth.info.base_url}/servers`, { headers })
  await berth.run(['faults', 'clear'])
  await fetch(`${berth.info.base_url}/servers`, { headers })
  const { stdout } = await berth.run(['logs', '--fault', id, '--headers'])
  expect(stdout).toMatch(new RegExp(`  502 .*servers\\.list.*\\n {10}${id}: 502 text/html\\n`))
  expect(stdout).toContain('→ authorization: Bearer ***\n')
  expect(stdout).toContain('→ x-note: mine\n')
  expect(stdout).toContain('← content-type: text/html\n')
  expect(stdout).not.toContain('  200  ')
})

test('the id of a request prints it with its headers and bodies', async () => {
  const { headers } = await fetch(`${berth.info.base_url}/servers/srv_none`, {
    headers: { authorization: `Bearer ${berth.info.api_key}`, 'x-note': 'mine' },
  })
  const id = headers.get('x-request-id') ?? ''
  const shown = await berth.run(['logs', id])
  expect(shown.stdout).toContain('404')
  expect(shown.stdout).toContain('→ x-note: mine\n')
  expect(shown.stdout).toContain('"error": "not_found"')
  expect(JSON.parse((await berth.run(['logs', id, '--json'])).stdout)).toMatchObject({
    id,
    request: null,
    response: { body: { error: 'not_found' } },
  })
  const unknown = await berth.run(['logs', 'req_none'])
  expect([unknown.exitCode, unknown.stderr]).toEqual([
    1,
    expect.stringContaining('"req_none" does not exist'),
  ])
})

test("the requests of berth's own commands are left out unless they are asked for", async () => {
  await berth.run(['logs', '--clear'])
  await berth.run(['servers'])
  expect((await berth.run(['logs'])).stdout).toContain('No requests that fit')
  expect((await berth.run(['logs', '--all'])).stdout).toContain('GET     /servers  servers.list  cli\n')
})

test('accounts are named where there are several', async () => {
  const account = JSON.parse((await berth.run(['accounts', 'create', '--json'])).stdout)
  await fetch(`${berth.info.base_url}/servers`, { headers: { authorization: `Bearer ${account.api_key}` } })
  expect((await berth.run(['logs'])).stdout).toMatch(
    new RegExp(`servers\\.list {2}${account.id} {2}key_\\w{10}\\n`),
  )
  await berth.run(['accounts', 'delete', account.id])
})

test('-f shows new requests across a reset and a restart, and ends with Ctrl-C', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'berth-logs-'))
  const args = ['--port', '0', '--data', dataDir, '--isolation', 'none']
  let served = serveProcess(args)
  const ended: { kill(signal: NodeJS.Signals): void; exited: Promise<number> }[] = []
  try {
    let info = await served.ready
    const ask = async (path: string) => {
      await fetch(`${info.base_url}${path}`, { headers: { authorization: `Bearer ${info.api_key}` } })
    }
    await ask('/servers/srv_before')
    const child = start(['logs', '-f', '--json', '--data', dataDir])
    ended.push(child)
    const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const sees = async (path: string) => {
      while (!text.includes(path)) {
        const { value, done } = await reader.read()
        if (done) throw new Error(`it ended: ${text} ${await child.stderr.text()}`)
        text += value
      }
    }
    // It has no word for being there: the first that it tells of shows it.
    const first = (async () => {
      while (!text.includes('srv_first')) {
        await ask('/servers/srv_first')
        await Bun.sleep(20)
      }
    })()
    await sees('srv_first')
    await first
    await fetch(`${info.base_url}/_berth/reset`, {
      method: 'POST',
      headers: { authorization: `Bearer ${info.admin_token}` },
    })
    await ask('/servers/srv_after_reset')
    await sees('srv_after_reset')
    served.child.kill('SIGTERM')
    await served.child.exited
    served = serveProcess(args)
    info = await served.ready
    await ask('/servers/srv_after_restart')
    await sees('srv_after_restart')
    expect(text).not.toContain('srv_before')
    expect(text.split('srv_after_reset').length).toBe(text.split('srv_after_restart').length)
    child.kill('SIGINT')
    expect(await child.exited).toBe(130)
  } finally {
    for (const one of [...ended, served.child]) {
      one.kill('SIGTERM')
      await one.exited
    }
    rmSync(dataDir, { recursive: true, force: true })
  }
}, 120_000)
