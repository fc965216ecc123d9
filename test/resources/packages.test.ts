import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Registry } from '../hosting/registries/registry.ts'
import { type TestBerth, testBerth } from '../support/berth.ts'
import { until } from '../support/processes.ts'
import { archiveOf, logged, ready } from '../support/projects.ts'

/** Which commands of a server use the mirror of the npm registry, besides installs of apps. */

const registry = new Registry([{ name: 'tiny', says: 'hello' }])
let berth: TestBerth
let serverId: string
beforeAll(async () => {
  berth = await testBerth({ flags: { 'npm-registry': registry.url } })
  serverId = await berth.server()
})
afterAll(async () => {
  await berth[Symbol.asyncDispose]()
  await registry[Symbol.asyncDispose]()
})

const HAS_NPM = Bun.which('npm', { PATH: '/usr/local/bin:/usr/bin:/bin' }) !== null
/** By the server's own Bun, which is last on PATH. */
const ADD = `echo '{}' > package.json; bun="\${PATH##*:}/bun"; timeout 60 "$bun" add tiny >&2 && "$bun" -p 'require("tiny")'`

const transcript = async (id: string): Promise<string> =>
  JSON.stringify((await berth.call('GET', `/servers/${serverId}/tasks/${id}/events`)).body)

async function task(command: string): Promise<string> {
  const { body } = await berth.call('POST', `/servers/${serverId}/tasks`, { goal: `run: ${command}` })
  await berth.control('GET', `/wait?task=${body.task_id}&until=completed,failed`)
  return transcript(body.task_id)
}

describe('a command gets packages through the mirror', () => {
  test('of exec, in a directory that it goes to itself', async () => {
    const before = registry.count('.tgz')
    const { stdout, stderr } = await berth.exec(serverId, `mkdir one && cd one && ${ADD}`)
    expect({ stdout, stderr }).toMatchObject({ stdout: 'hello\n' })
    // What the mirror has comes from it, also without the registry.
    const { stdout: again } = await berth.exec(serverId, `mkdir two && cd two && ${ADD}`)
    expect(again).toBe('hello\n')
    expect(registry.count('.tgz') - before).toBe(1)
  })

  test.skipIf(!HAS_NPM)('of exec, of a task and on a terminal, with npm', async () => {
    const { stdout } = await berth.exec(serverId, 'npm config get registry; echo $BERTH_PACKAGES_URL')
    const [used, mirror = ''] = stdout.trim().split('\n')
    expect(used).toBe(mirror)
    expect(mirror).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
    expect(await task('npm config get registry')).toContain(mirror)
    const command = 'npm config get registry > of-terminal; sleep 300'
    await berth.call('POST', `/servers/${serverId}/terminals`, { command })
    const written = async () => (await berth.exec(serverId, 'cat of-terminal 2>/dev/null')).stdout
    await until(async () => (await written()) === `${mirror}\n`, 'the registry of the terminal')
  })

  test.each(['.npmrc', 'bunfig.toml'])('but not where %s of a project names a registry', async (file) => {
    const settings =
      file === '.npmrc' ? 'registry=http://127.0.0.1:9/' : '[install]\nregistry = "http://127.0.0.1:9/"'
    const name = file.replaceAll('.', '')
    const { stdout, stderr, exitCode } = await berth.exec(
      serverId,
      `mkdir -p ${name}/below && printf '${settings.replaceAll('\n', '\\n')}\n' > ${name}/${file} && cp ${name}/${file} ${name}/below && cd ${name}/below && ${ADD}`,
    )
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 1 })
    expect(stderr).toMatch(/refused/i)
  })
})

test('no result of MCP shows the credential', async () => {
  const { stdout: token } = await berth.exec(serverId, 'printf %s $BERTH_PACKAGES_TOKEN')
  for (const query of ['', '?schemas=full']) {
    const response = await berth.fetch(`/mcp${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name: 'exec_run', arguments: { serverId, command: 'pip config list; env' } },
      }),
    })
    const text = await response.text()
    expect(text).toContain('/-/***/pypi/simple/')
    expect(text).not.toContain(token)
  }
})

test('no transcript of a task and no log of an app shows the credential for the mirror', async () => {
  const { stdout: token } = await berth.exec(serverId, 'printf %s $BERTH_PACKAGES_TOKEN')
  expect(token).toHaveLength(43)
  const said = await task('echo token=$BERTH_PACKAGES_TOKEN')
  expect(said).toContain('token=***')
  expect(said).not.toContain(token)
  const source = await archiveOf({
    'index.ts':
      'console.log("token=" + process.env.BERTH_PACKAGES_TOKEN); Bun.serve({ port: process.env.PORT, fetch: () => new Response("up") })',
  })
  const { id } = await ready(berth, serverId, { source })
  const log = await logged(berth, id)
  expect(log).toContain('token=***')
  expect(log).not.toContain(token)
})
