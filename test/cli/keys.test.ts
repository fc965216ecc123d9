import { expect, test } from 'bun:test'
import { serveForTests } from './command.ts'

const berth = await serveForTests()
const server = await berth.server()

const keys = (...args: string[]) => berth.run(['keys', ...args])
const json = (...args: string[]) => berth.json('keys', ...args)

test('a key is created, limited, widened, used and deleted from the terminal', async () => {
  const { id, key, ...created } = await json('create', 'CI', '--servers', server)
  expect(created).toMatchObject({ label: 'CI', allowed_server_ids: [server], allowed_project_ids: [] })
  const create = ['servers', 'create', '--api-key', key]
  const refused = await berth.run(create)
  expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
  expect(refused.stderr).toMatch(/^berth: .* \(forbidden\)\n$/)
  expect(await json('update', id, '--all')).toEqual({
    id,
    allowed_server_ids: [],
    allowed_project_ids: [],
  })
  expect((await berth.run(create)).exitCode).toBe(0)
  expect(await json('update', id, '--servers', server)).toMatchObject({ allowed_server_ids: [server] })
  const { keys: list } = await json('list')
  expect(list[0]).toMatchObject({ id, label: 'CI', masked: `sk_live_…${key.slice(-4)}` })
  expect(JSON.stringify(list)).not.toContain(key)
  expect(await json('delete', id)).toEqual({ id, deleted: true })
  expect((await berth.run(['servers', '--api-key', key])).stderr).toContain('missing_or_invalid_api_key')
})

test('people get sentences and an aligned table, plain "berth keys" included', async () => {
  const created = await keys('create', 'a \u001b[31mlabel', '--servers', `${server}, ${server}`)
  const shape =
    /^Created (key_\w+) \(a �\[31mlabel, limited to 1 server\):\n\n {2}(sk_live_\w{43})\n\nCommands take it .*\n$/
  const [, id = '', key = ''] = shape.exec(created.stdout) ?? []
  expect(id).not.toBe('')
  const { stdout } = await keys()
  const [heading, line] = stdout.split('\n')
  expect(heading).toMatch(/^ID +LABEL +KEY +LAST USED +CREATED +SERVERS +PROJECTS$/)
  expect(line).toMatch(
    new RegExp(`^${id} +a �\\[31mlabel +sk_live_…${key.slice(-4)} +never +\\S+Z +${server} +all$`),
  )
  expect((await keys('update', id, '--all')).stdout).toBe(`${id} is account-wide.\n`)
  expect((await keys('update', id, '--servers', server)).stdout).toBe(`${id} is limited to 1 server.\n`)
  expect((await keys('rm', id)).stdout).toBe(`Deleted ${id}.\n`)
})

test.each([
  [['create'], "missing required argument 'LABEL'"],
  [['update', 'key_x'], 'either --servers and --projects, or --all'],
  [['update', 'key_x', '--all', '--servers', 'srv_x'], 'either --servers and --projects, or --all'],
  [['update', 'key_x', '--servers', ''], 'with commas between'],
  [['create', 'x', '--projects', 'prj_x,'], 'with commas between'],
])('wrong usage: keys %p', async (args, said) => {
  const { exitCode, stdout, stderr } = await keys(...args)
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr).toContain(said)
})

test('an unknown id and the last account-wide key are reported in one sentence', async () => {
  const unknown = await keys('create', 'x', '--servers', 'srv_unknown')
  expect(unknown.exitCode).toBe(1)
  expect(unknown.stderr).toMatch(/^berth: .*srv_unknown.* \(bad_request\)\n$/)
  const [first] = (await json('list')).keys.slice(-1)
  const last = await keys('delete', first.id)
  expect(last.exitCode).toBe(1)
  expect(last.stderr).toMatch(/^berth: .*last one.* \(bad_request\)\n$/)
})
