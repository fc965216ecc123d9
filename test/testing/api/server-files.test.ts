import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pack } from 'tar-stream'
import { type TestBerth, testBerth } from '../../support/berth.ts'

describe('the archive of a server', () => {
  let berth: TestBerth
  let server: string
  let archive: Uint8Array<ArrayBuffer>
  beforeAll(async () => {
    // Its own user reads what a mode closes to it, so files of every mode can be compared.
    berth = await testBerth({ flags: { isolation: 'none' } })
    server = await berth.server({ task: 'shop', tier: 'small', region: 'eu-west' })
    await berth.exec(
      server,
      [
        'mkdir -p "empty dir" d/ü/deep closed; echo one >"a b"; : >zero; chmod 750 "a b"; ln "a b" hard',
        'ln -s "../a b" d/link; ln -s /etc/passwd out; echo u >d/ü/ñ; chmod 0 d/ü/ñ; head -c 9000000 /dev/urandom >big',
        'echo s >closed/secret; chmod 311 closed; printf x >"$(printf "bad\\377name")"',
        'find . ! -type l ! -name closed -exec touch -d @981158400.25 {} +',
      ].join('\n'),
    )
    archive = await exported(server)
  })
  afterAll(() => berth?.[Symbol.asyncDispose]())

  const admin = () => ({ authorization: `Bearer ${berth.info.admin_token}` })

  async function exported(id: string): Promise<Uint8Array<ArrayBuffer>> {
    const response = await fetch(`${berth.info.base_url}/_berth/servers/${id}/export`, { headers: admin() })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/octet-stream'])
    return new Uint8Array(await response.arrayBuffer())
  }

  async function imported(bytes: Uint8Array<ArrayBuffer>, query = '') {
    const init = { method: 'POST', headers: admin(), body: bytes }
    const response = await fetch(`${berth.info.base_url}/_berth/servers/import${query}`, init)
    // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
    return { status: response.status, body: (await response.json()) as any }
  }

  /** What is to be the same: names, kinds, modes, sizes, numbers of names, times, targets, and all content. */
  const LOOK = `find . -mindepth 1 -type f -printf "%P %m %s %n %T@\\n" | LC_ALL=C sort
    find . -mindepth 1 -type d ! -name closed -printf "%P %m %T@\\n" | LC_ALL=C sort; stat -c %a closed
    find . -type l -printf "%P %l\\n" | LC_ALL=C sort; find . -type f -exec sha256sum {} + | LC_ALL=C sort`

  const servers = () => readdirSync(join(berth.dataDir, 'servers')).sort()

  test('makes a server with the same files, awake and asleep', async () => {
    const made = await imported(archive)
    expect(made).toMatchObject({
      status: 201,
      body: {
        status: 'running',
        tier: 'small',
        files: 9,
        archived: { id: server, image: null, root: false },
      },
    })
    const { stdout } = await berth.exec(server, LOOK)
    expect((await berth.exec(made.body.id, LOOK)).stdout).toBe(stdout)
    expect(stdout).toContain('d/ü/ñ 0 2 1 981158400.25')
    await berth.call('POST', `/servers/${server}/actions`, { action: 'stop' })
    const again = await imported(await exported(server), '?task=copy&tier=medium&region=us-west')
    expect((await berth.call('GET', `/servers/${again.body.id}`)).body.server).toMatchObject({
      ...{ task: 'copy', tier: 'medium', region: 'us-west', status: 'running' },
    })
    expect((await berth.exec(again.body.id, LOOK)).stdout).toBe(stdout)
    expect((await berth.call('GET', `/servers/${made.body.id}`)).body.server).toMatchObject({
      ...{ task: 'shop', region: 'eu-west' },
    })
  })

  test('is read by tar, and says what it is first', async () => {
    const list = Bun.spawn(['tar', 'tf', '-'], { stdin: archive, stderr: 'ignore' })
    const names = (await list.stdout.text()).trim().split('\n')
    expect([names[0], names.at(-1)]).toEqual(['server.json', 'manifest.jsonl'])
    expect(names.filter((name) => !name.startsWith('files/'))).toHaveLength(2)
  })

  test('leaves nothing if it is cut off or changed at any place', async () => {
    const before = servers()
    const small = await berth.server()
    await berth.exec(small, 'mkdir d; seq 300 >d/s; ln -s s d/l; ln d/s h')
    const whole = await exported(small)
    await berth.call('DELETE', `/servers/${small}`)
    for (let end = 0; end < whole.length - 1024; end += 411) {
      const { status, body } = await imported(whole.slice(0, end))
      expect([end, status, body.message]).toEqual([end, 400, expect.stringContaining('archive')])
    }
    // Others are filling, and mean nothing.
    const places = [...whole.keys()].filter((at) => whole[at] !== 0 && at % 29 === 0)
    for (const at of places) {
      const changed = whole.slice()
      changed[at] = (changed[at] ?? 0) ^ 1
      const { status, body } = await imported(changed)
      expect([at, status, typeof body.message]).toEqual([at, 400, 'string'])
    }
    expect(servers()).toEqual(before)
  }, 60_000)

  /** Returns an archive whose files are these entries. */
  async function archiveOf(
    entries: [header: Parameters<ReturnType<typeof pack>['entry']>[0], content?: string][],
    change: object = {},
  ): Promise<Uint8Array<ArrayBuffer>> {
    const tar = pack()
    const facts = {
      ...{ format: 1, id: server, task: '', tier: 'small', region: 'us-east', image: null, root: false },
      ...{ exported_at: '2026-01-01T00:00:00.000Z', version: '0.0.0', ...change },
    }
    tar.entry({ name: 'server.json' }, JSON.stringify(facts))
    for (const [header, content] of entries) tar.entry(header, content ?? '')
    tar.finalize()
    return Buffer.concat(await Array.fromAsync(tar as AsyncIterable<Uint8Array>))
  }

  test.each<[string, Parameters<typeof archiveOf>, RegExp]>([
    ['a path that leads out', [[[{ name: 'files/../../x' }, 'x']]], /leads out/],
    ['a path beside the files', [[[{ name: 'x' }, 'x']]], /leads out/],
    ['an absolute path', [[[{ name: '/etc/x' }, 'x']]], /leads out/],
    [
      'a path through a link that leads out',
      [[[{ name: 'files/l', type: 'symlink', linkname: '/etc' }], [{ name: 'files/l/x' }, 'x']]],
      /is below "files\/l", which is no directory/,
    ],
    [
      'a hard link to a file that is not its own',
      [[[{ name: 'files/h', type: 'link', linkname: '/etc/passwd' }]]],
      /not among its files/,
    ],
    ['a device', [[[{ name: 'files/d', type: 'block-device' }]]], /neither a file/],
    [
      'an entry twice',
      [
        [
          [{ name: 'files/a' }, 'x'],
          [{ name: 'files/a' }, 'y'],
        ],
      ],
      /twice/,
    ],
    ['another format', [[], { format: 2, version: '9.9.9' }], /format 2.*reads 1.*9\.9\.9/],
    ['another tier', [[], { tier: 'huge' }], /tier "huge"/],
    ['no manifest', [[]], /cut off/],
  ])('is refused with %s', async (_, [entries, change], message) => {
    const before = servers()
    const { status, body } = await imported(await archiveOf(entries, change))
    expect([status, body.message]).toEqual([400, expect.stringMatching(message)])
    expect(servers()).toEqual(before)
  })

  test('is refused if its files take more than the server may store, without reading the rest', async () => {
    const before = servers()
    const small = await testBerth({ flags: { isolation: 'none', plan: '{"storage_gb":{"small":0.005}}' } })
    try {
      const init = { method: 'POST', headers: { authorization: `Bearer ${small.info.admin_token}` } }
      const url = `${small.info.base_url}/_berth/servers/import`
      const response = await fetch(url, { ...init, body: archive })
      expect([response.status, (await response.json()) as unknown]).toEqual([
        400,
        { error: 'bad_request', message: expect.stringContaining('more than the 0.005 GB') },
      ])
      expect(readdirSync(join(small.dataDir, 'servers'))).toEqual([])
    } finally {
      await small[Symbol.asyncDispose]()
    }
    expect(servers()).toEqual(before)
  })

  test('needs the admin token, a server, and an account', async () => {
    const { base_url: url, api_key: key } = berth.info
    const headers = { authorization: `Bearer ${key}` }
    expect((await fetch(`${url}/_berth/servers/${server}/export`, { headers })).status).toBe(401)
    expect((await fetch(`${url}/_berth/servers/import`, { method: 'POST', headers })).status).toBe(401)
    expect((await berth.control('GET', '/servers/srv_none/export')).status).toBe(404)
    expect((await imported(archive, '?account_id=acct_none')).body.message).toContain('no account')
  })
})
