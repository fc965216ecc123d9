import { describe, expect, test } from 'bun:test'
import { pack } from 'tar-stream'
import { type Answer, berthForTests } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { archiveOf, created, logged, ready, settled, shown } from '../../support/projects.ts'

const berth = await berthForTests({ flags: { plan: { projects: { small: 100 } } } })
const serverId = await berth.server()

type Files = Record<string, string>

const sha256 = (content: string) => new Bun.CryptoHasher('sha256').update(content).digest('hex')

const manifestOf = (files: Files) => ({
  files: Object.entries(files).map(([path, content]) => ({ path, sha256: sha256(content) })),
})

/** Pushes files, of which `sent` are in the archive. */
async function pushWith(
  id: string,
  files: Files,
  sent: Files,
  links?: object[],
  pieces?: object[],
): Promise<Answer<Pushed>> {
  const form = new FormData()
  if (pieces) form.set('pieces', JSON.stringify(pieces))
  form.set('files', JSON.stringify(manifestOf(files).files))
  if (links) form.set('links', JSON.stringify(links))
  form.set('archive', new Blob([Buffer.from((await archiveOf(sent)).data, 'base64')]))
  const response = await berth.fetch(`/projects/${id}/push`, { method: 'POST', body: form })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Pushed }
}

interface Pushed {
  missing: string[]
  written: number
  removed: number
  began: string | null
  message?: string
}

/** Pushes files as a client does: asks what is missing, sends that, and waits for the app. */
async function push(id: string, files: Files): Promise<Pushed & { asked: string[] }> {
  const first = await berth.call('POST', `/projects/${id}/push`, manifestOf(files))
  const asked: string[] = first.body.missing
  const sent = Object.fromEntries(asked.map((path) => [path, files[path] ?? '']))
  const { body } = asked.length === 0 ? first : await pushWith(id, files, sent)
  await settled(berth, id)
  return { ...body, asked }
}

const text = async (url: string | null, path = '') => (await fetch(`${url}${path}`)).text()

const server = (answer: string) =>
  `Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response('${answer}') })`

/** An app whose installs can be counted. */
const APP: Files = {
  'berth.json': '{"install":"echo once >> installs","start":"bun src/index.ts"}',
  'package.json': '{"name":"app"}',
  'src/index.ts': server('one'),
  'src/old.ts': '',
}

const files = async (slug: string) =>
  (await berth.exec(serverId, `cd projects/${slug} && find . -type f | sort`)).stdout.split('\n').slice(0, -1)

describe('POST /projects/{projectId}/push', () => {
  test('takes only what differs, removes what is gone, leaves what the app made, and restarts', async () => {
    const { id, slug, url } = await ready(berth, serverId, {
      visibility: 'public',
      source: await archiveOf(APP),
    })
    await berth.exec(serverId, `cd projects/${slug} && echo kept > src/data.db`)
    const { 'src/old.ts': _, ...rest } = APP
    const next = { ...rest, 'src/index.ts': server('two'), 'src/new.ts': '' }
    expect(await push(id, next)).toMatchObject({
      asked: ['src/index.ts', 'src/new.ts'],
      ...{ missing: [], written: 2, removed: 1, began: 'start' },
    })
    expect(await text(url)).toBe('two')
    expect(await files(slug)).toEqual([
      ...['./berth.json', './installs', './package.json'],
      ...['./src/data.db', './src/index.ts', './src/new.ts'],
    ])
    expect(await push(id, next)).toMatchObject({ asked: [], written: 0, removed: 0, began: null })
  })

  test('installs again only if a package file or the command has changed', async () => {
    const { id, slug } = await ready(berth, serverId, { source: await archiveOf(APP) })
    const installs = async () =>
      (await berth.exec(serverId, `wc -l < projects/${slug}/installs`)).stdout.trim()
    expect(await push(id, { ...APP, 'src/index.ts': server('two') })).toMatchObject({ began: 'start' })
    expect(await installs()).toBe('1')
    const locked = { ...APP, 'bun.lock': '{}' }
    expect(await push(id, locked)).toMatchObject({ began: 'install' })
    expect(await installs()).toBe('2')
    const other = { ...locked, 'berth.json': APP['berth.json']?.replace('once', 'twice') ?? '' }
    expect(await push(id, other)).toMatchObject({ began: 'install' })
    expect(await installs()).toBe('3')
  })

  test('an install writes no lock file, also by the manager that the app names, so that the next push needs no other', async () => {
    const app = {
      'package.json': '{"name":"app","packageManager":"bun@1","dependencies":{"own":"file:./own"}}',
      'own/package.json': '{"name":"own","version":"1.0.0"}',
      'index.ts': server('one'),
    }
    const { id, slug } = await ready(berth, serverId, { source: await archiveOf(app) })
    expect(await files(slug)).not.toContain('./bun.lock')
    expect(await push(id, { ...app, 'index.ts': server('two') })).toMatchObject({ began: 'start' })
  })

  test('what berth installs by is not taken for the choice of the app, which runs by the same program after it', async () => {
    const app = (text: string) => ({
      'package.json': '{"name":"app","dependencies":{"own":"file:./own"}}',
      'own/package.json': '{"name":"own","version":"1.0.0"}',
      'index.js': `const runtime = process.versions.bun ? 'Bun' : 'Node.js'
        require('node:http').createServer((_, response) => response.end(runtime + ' ${text}')).listen(process.env.PORT)`,
    })
    const source = await archiveOf(app('one'))
    const { id, slug, url } = await ready(berth, serverId, { visibility: 'public', source })
    expect(await files(slug)).not.toContain('./bun.lock')
    const runtime = (await text(url)).replace(' one', '')
    expect(await push(id, app('two'))).toMatchObject({ began: 'start' })
    expect(await text(url)).toBe(`${runtime} two`)
  })

  test('builds again, and restarts nothing that berth serves itself or that watches its files', async () => {
    const site = { 'index.html': 'one' }
    const still = await ready(berth, serverId, { visibility: 'public', source: await archiveOf(site) })
    expect(await push(still.id, { 'index.html': 'two' })).toMatchObject({ written: 1, began: null })
    expect(await text(still.url)).toBe('two')

    const built = {
      'berth.json': '{"build":"mkdir -p out && cat a.txt > out/index.html","static":{"folder":"out"}}',
    }
    const page = await ready(berth, serverId, {
      visibility: 'public',
      source: await archiveOf({ ...built, 'a.txt': 'one' }),
    })
    expect(await push(page.id, { ...built, 'a.txt': 'two' })).toMatchObject({ began: 'build' })
    expect(await text(page.url)).toBe('two')

    const hot = { 'package.json': '{"scripts":{"start":"bun --hot index.ts"}}' }
    const dev = await ready(berth, serverId, {
      source: await archiveOf({ ...hot, 'index.ts': server('one') }),
    })
    expect(await push(dev.id, { ...hot, 'index.ts': server('two') })).toMatchObject({ began: null })
  })

  test('keeps no request waiting, whatever the script is by which the app starts', async () => {
    const files = { 'package.json': '{"scripts":{"start":"bun index.ts"}}', 'index.ts': server('one') }
    const { id, slug } = await ready(berth, serverId, { source: await archiveOf(files) })
    const changed = {
      ...files,
      'package.json': JSON.stringify({ scripts: { start: 'flask '.repeat(60_000) } }),
    }
    await berth.call('PUT', `/servers/${serverId}/files`, {
      path: `projects/${slug}/package.json`,
      content: changed['package.json'],
    })
    const begun = performance.now()
    // The push finds out whether the app takes its changes by itself.
    const { body } = await pushWith(id, { ...changed, 'new.txt': 'new' }, { 'new.txt': 'new' })
    expect(body).toMatchObject({ written: 1, began: 'start' })
    expect(performance.now() - begun).toBeLessThan(5_000)
    await settled(berth, id)
  }, 300_000)

  test('an app that was broken is fixed by the next push, and the old one answers meanwhile', async () => {
    const { id, url } = await ready(berth, serverId, { visibility: 'public', source: await archiveOf(APP) })
    await push(id, { ...APP, 'src/index.ts': 'throw new Error("broken on purpose")' })
    expect((await berth.call('GET', `/projects/${id}`)).body.init_phase).toBe('failed')
    expect(await logged(berth, id)).toContain('broken on purpose')
    expect(await text(url)).toBe('one')
    expect(await push(id, { ...APP, 'src/index.ts': server('fixed') })).toMatchObject({ began: 'start' })
    expect(await text(url)).toBe('fixed')
  })

  test('the version before is ready again when a push describes it, without another start', async () => {
    const counted = {
      ...APP,
      'berth.json': '{"start":"echo once >> starts; test ! -e off && exec bun src/index.ts"}',
    }
    const { id, slug, url } = await ready(berth, serverId, {
      visibility: 'public',
      source: await archiveOf(counted),
    })
    const starts = async () => (await berth.exec(serverId, `cat projects/${slug}/starts`)).stdout
    await push(id, { ...counted, 'src/index.ts': 'process.exit(5)' })
    expect((await berth.call('GET', `/projects/${id}`)).body.init_phase).toBe('failed')
    const before = await starts()
    expect(await push(id, counted)).toMatchObject({ asked: [], written: 0, removed: 0, began: null })
    expect((await berth.call('GET', `/projects/${id}`)).body.init_phase).toBe('ready')
    expect(await text(url)).toBe('one')
    expect(await starts()).toBe(before)
    // A bring-up that fails otherwise says nothing of the version before.
    await push(id, { ...counted, 'src/index.ts': 'process.exit(5)' })
    await berth.exec(serverId, `touch projects/${slug}/off`)
    await berth.call('POST', `/projects/${id}/init`)
    expect(await settled(berth, id)).toMatchObject({ init_phase: 'failed' })
    expect(await push(id, counted)).toMatchObject({ written: 0, began: 'start' })
  })

  test('one that does not come up leaves the files, packages and build of the version that runs', async () => {
    const good: Files = {
      'berth.json': '{"install":"cp package.json packages","build":"cp src/a built","start":"bun index.ts"}',
      'package.json': '{"version":"1"}',
      'index.ts': server('one'),
      'src/a': 'a1',
      'src/gone/b': 'b1',
    }
    const { id, slug, url } = await ready(berth, serverId, {
      visibility: 'public',
      source: await archiveOf(good),
    })
    await berth.exec(serverId, `cd projects/${slug} && echo kept > data.db`)
    const tree = async () =>
      (await berth.exec(serverId, `cd projects/${slug} && find . -type f | sort | xargs tail -n +1`)).stdout
    const before = await tree()
    const { 'src/gone/b': _, ...rest } = good
    const broken = { ...rest, 'src/a': 'a2', 'new/c': 'c', 'index.ts': 'process.exit(5)' }
    const changes: Files[] = [
      broken,
      { ...broken, 'package.json': '{"version":"2"}' },
      {
        ...rest,
        'berth.json': (good['berth.json'] ?? '').replace('cp src/a built', 'echo x > built; false'),
      },
      { ...rest, 'berth.json': '{' },
    ]
    for (const files of changes) {
      expect(await push(id, files)).toMatchObject({ missing: [], removed: 1 })
      expect(await settled(berth, id)).toMatchObject({ init_phase: 'failed', runtime_status: 'running' })
      expect(await tree()).toBe(before)
    }
    expect(await logged(berth, id)).toContain('The files of the version before are back in place.')
    // So that a restart is no outage.
    await berth.call('POST', `/servers/${serverId}/actions`, { action: 'restart' })
    expect(await text(url)).toBe('one')
    expect(await push(id, { ...good, 'index.ts': server('two') })).toMatchObject({
      ...{ asked: ['index.ts'], written: 1, removed: 0 },
    })
    expect(await text(url)).toBe('two')
  }, 120_000)

  test('an app with a port of its own is started again with the files that it had', async () => {
    const port = 20_000 + Math.floor(Math.random() * 10_000)
    const manifest = JSON.stringify({ start: 'bun index.ts', port })
    const fixed = (answer: string) => server(answer).replace('process.env.PORT', String(port))
    const good = { 'berth.json': manifest, 'index.ts': fixed('one') }
    const { id, url } = await ready(berth, serverId, { visibility: 'public', source: await archiveOf(good) })
    await push(id, { ...good, 'index.ts': 'process.exit(5)' })
    expect(await settled(berth, id)).toMatchObject({ init_phase: 'failed', runtime_status: 'running' })
    expect(await text(url)).toBe('one')
  })

  test('a push beside one that fails sends what is missing after all', async () => {
    const good = { 'index.ts': server('one'), a: '1', b: '1' }
    const { id, url, slug } = await ready(berth, serverId, {
      visibility: 'public',
      source: await archiveOf(good),
    })
    const slow = { ...good, a: '2', 'index.ts': 'await Bun.sleep(700); process.exit(5)' }
    const first = await pushWith(id, slow, { a: slow.a, 'index.ts': slow['index.ts'] })
    expect(first.body.began).toBe('start')
    // Asked while the other one is in place, and sent when that has failed.
    const next = { ...good, a: '2', b: '2', 'index.ts': server('two') }
    const { missing } = (await berth.call('POST', `/projects/${id}/push`, manifestOf(next))).body
    expect(missing.sort()).toEqual(['b', 'index.ts'])
    await settled(berth, id)
    const stale = await pushWith(id, next, { b: next.b, 'index.ts': next['index.ts'] })
    expect(stale.body).toMatchObject({ missing: ['a'], written: 0, began: null })
    await push(id, next)
    expect(await text(url)).toBe('two')
    expect((await berth.exec(serverId, `cat projects/${slug}/a`)).stdout).toBe('2')
  })

  test('a push ends a bring-up that waits for an app that never answers', async () => {
    const { id, url } = await ready(berth, serverId, { visibility: 'public', source: await archiveOf(APP) })
    const mute = { ...APP, 'src/index.ts': 'setInterval(() => {}, 1000)' }
    await pushWith(id, mute, { 'src/index.ts': mute['src/index.ts'] ?? '' })
    const began = performance.now()
    expect(await push(id, { ...APP, 'src/index.ts': server('two') })).toMatchObject({ began: 'start' })
    expect(await text(url)).toBe('two')
    expect(performance.now() - began).toBeLessThan(30_000)
  })

  describe('beside a bring-up that goes on leaves the version that runs', () => {
    const mute = 'setInterval(() => {}, 1000)'

    /** Pushes an app that never responds, waits until berth checks its health, and pushes one that fails. */
    async function pushTwice(id: string, good: Files, meanwhile: () => Promise<void>): Promise<void> {
      const first = { ...good, 'index.ts': mute, a: 'mute' }
      await pushWith(id, first, { 'index.ts': mute, a: 'mute' })
      const isChecked = async () => (await shown(berth, id)).init_phase === 'healthcheck'
      await until(isChecked, 'the check of the first')
      await meanwhile()
      const second = { ...good, 'index.ts': 'process.exit(5)', a: 'fails' }
      expect(await push(id, second)).toMatchObject({ missing: [], began: expect.any(String) })
      await settled(berth, id)
      expect(await shown(berth, id)).toMatchObject({ init_phase: 'failed', runtime_status: 'running' })
    }

    test('with its files, its build and what it keeps in memory', async () => {
      const remembering = `const memory = crypto.randomUUID()
        Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response(memory) })`
      const good = {
        'berth.json': '{"start":"bun index.ts","build":"cp a built"}',
        'index.ts': remembering,
        a: 'good',
      }
      const { id, slug, url } = await ready(berth, serverId, {
        visibility: 'public',
        source: await archiveOf(good),
      })
      const memory = await text(url)
      await pushTwice(id, good, async () => expect(await text(url)).toBe(memory))
      expect(await text(url)).toBe(memory)
      const { stdout } = await berth.exec(serverId, `cd projects/${slug} && cat a built index.ts`)
      expect(stdout).toBe(`goodgood${remembering}`)
      expect(await push(id, good)).toMatchObject({ asked: [], written: 0, began: null })
      expect(await text(url)).toBe(memory)
    })

    test('an app with a port of its own is started again', async () => {
      const port = 20_000 + Math.floor(Math.random() * 10_000)
      const good = {
        'berth.json': JSON.stringify({ start: 'bun index.ts', port }),
        'index.ts': server('one').replace('process.env.PORT', String(port)),
        a: 'good',
      }
      const source = await archiveOf(good)
      const { id, slug, url } = await ready(berth, serverId, { visibility: 'public', source })
      await pushTwice(id, good, async () => {})
      expect(await text(url)).toBe('one')
      expect((await berth.exec(serverId, `cat projects/${slug}/a`)).stdout).toBe('good')
    })
  })

  test('gives a blank project its code, with links', async () => {
    const { id, slug, url } = await created(berth, serverId, { name: 'Blank', visibility: 'public' })
    expect((await berth.call('POST', `/projects/${id}/push`, manifestOf(APP))).body.missing).toEqual(
      Object.keys(APP),
    )
    const links = [{ path: 'link', target: 'src/index.ts' }]
    const { body } = await pushWith(id, APP, APP, links)
    expect(body).toMatchObject({ missing: ['link'], written: 0 })
    expect(await push(id, APP)).toMatchObject({ written: 4, began: 'install' })
    expect(await text(url)).toBe('one')
    expect(slug).toBe('blank')
  })

  test('refuses what leads out, and what the manifest lacks, and changes nothing', async () => {
    const { id, url } = await ready(berth, serverId, { visibility: 'public', source: await archiveOf(APP) })
    const refused = [
      await pushWith(id, { ...APP, '../x': '' }, APP),
      await pushWith(id, APP, { ...APP, other: '' }),
      await pushWith(id, APP, APP, [{ path: 'out', target: '../../..' }]),
      await berth.call('POST', `/projects/${id}/push`, { files: [{ path: 'a', sha256: 'short' }] }),
    ]
    expect(refused.map(({ status }) => status)).toEqual([400, 400, 400, 400])
    expect(refused[1]?.body.message).toContain('"other"')
    expect(refused[2]?.body.message).toContain('leads out')
    expect(await text(url)).toBe('one')
    expect(
      (await berth.call('POST', '/projects/prj_00000000000000000000000000/push', { files: [] })).status,
    ).toBe(404)
  })
})

describe('POST /projects/{projectId}/restart', () => {
  test('starts the app again without an install, and one that was never up from the install on', async () => {
    const started = `const at = crypto.randomUUID()
      Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response(at) })`
    const app = { ...APP, 'src/index.ts': started }
    const { id, slug, url } = await ready(berth, serverId, {
      visibility: 'public',
      source: await archiveOf(app),
    })
    const before = await text(url)
    const { status, body } = await berth.call('POST', `/projects/${id}/restart`)
    expect([status, body.id]).toEqual([202, id])
    expect((await settled(berth, id)).init_phase).toBe('ready')
    expect(await text(url)).not.toBe(before)
    expect((await berth.exec(serverId, `wc -l < projects/${slug}/installs`)).stdout.trim()).toBe('1')
    const blank = await created(berth, serverId, {})
    expect((await berth.call('POST', `/projects/${blank.id}/restart`)).status).toBe(400)
  })
})

test('the log names each phase of a bring-up, in its place, however quick it is', async () => {
  const { id } = await ready(berth, serverId, {
    source: await archiveOf({
      ...APP,
      'berth.json': '{"install":"echo installing","build":"echo building","start":"bun src/index.ts"}',
    }),
  })
  const { logs } = (await berth.call('GET', `/projects/${id}/logs`)).body
  const lines = logs.filter(({ source }: { source: string }) => source !== 'app')
  expect(lines.map(({ phase, text }: { phase?: string; text: string }) => phase ?? text)).toEqual([
    'install',
    expect.stringContaining('Found'),
    expect.stringContaining('echo installing'),
    'installing',
    'build',
    expect.stringContaining('echo building'),
    'building',
    ...[
      'start',
      expect.stringContaining('Starts'),
      'healthcheck',
      expect.stringContaining('Answers'),
      'ready',
    ],
  ])
})

describe('a push in parts', () => {
  const FILES: Files = { 'index.html': 'one', 'data/large.bin': 'aaaabbbbcc', 'other.txt': 'other' }
  const site = async () => {
    const source = await archiveOf({ 'index.html': 'zero' })
    const { id } = await created(berth, serverId, { source })
    await settled(berth, id)
    return id
  }
  const names = async (id: string) => {
    const { slug } = (await berth.call('GET', `/projects/${id}`)).body
    const { body } = await berth.call('GET', `/servers/${serverId}/files`)
    return (body.files as string[]).filter((path) => path.startsWith(`projects/${slug}/`)).length
  }

  test('changes nothing before the last one, and puts the pieces of a file together', async () => {
    const id = await site()
    expect((await berth.call('POST', `/projects/${id}/push`, manifestOf(FILES))).body.missing.length).toBe(3)
    const piece = (text: string, offset: number, more: boolean) =>
      pushWith(id, FILES, { 'data/large.bin': text }, [], [{ path: 'data/large.bin', offset, more }])
    const missing = async (answer: Promise<Answer<Pushed>>) => (await answer).body.missing.sort()
    const part = { 'index.html': 'one' }
    expect(await missing(pushWith(id, FILES, part, []))).toEqual(['data/large.bin', 'other.txt'])
    expect(await missing(piece('aaaa', 0, true))).toEqual(['data/large.bin', 'other.txt'])
    expect(await missing(piece('bbbb', 4, true))).toEqual(['data/large.bin', 'other.txt'])
    expect(await missing(piece('cc', 8, false))).toEqual(['other.txt'])
    expect(await names(id)).toBe(1)
    const last = await pushWith(id, FILES, { 'other.txt': 'other' }, [])
    expect(last.body).toMatchObject({ missing: [], written: 3, removed: 0 })
    await settled(berth, id)
    const { url } = (await berth.call('PATCH', `/projects/${id}`, { visibility: 'public' })).body
    expect([await text(url), await text(url, 'data/large.bin')]).toEqual(['one', 'aaaabbbbcc'])
  })

  test('that leaves a gap, or leads through a link that came before, is refused', async () => {
    const id = await site()
    const gap = await pushWith(
      id,
      FILES,
      { 'data/large.bin': 'bb' },
      [],
      [{ path: 'data/large.bin', offset: 4 }],
    )
    expect([gap.status, gap.body.message]).toEqual([
      400,
      expect.stringContaining('begins at byte 4; 0 have come'),
    ])
    const links = [{ path: 'way', target: 'data' }]
    const files = { 'way/f': 'x', a: 'a', 'z/z': 'z' }
    const tar = pack()
    tar.entry({ name: 'way', type: 'symlink', linkname: '/tmp' })
    tar.finalize()
    const form = new FormData()
    form.set('files', JSON.stringify(manifestOf(files).files))
    form.set('links', JSON.stringify(links))
    form.set('archive', new Blob([await new Response(tar as unknown as ReadableStream).bytes()]))
    await berth.fetch(`/projects/${id}/push`, { method: 'POST', body: form })
    const through = await pushWith(id, files, { 'way/f': 'x' }, links)
    expect([through.status, through.body.message]).toEqual([400, expect.stringContaining('is below it')])
    expect(await names(id)).toBe(1)
  })

  test('that is not continued is forgotten after ten minutes, and when something else is pushed', async () => {
    const id = await site()
    const lacks = async () =>
      (await berth.call('POST', `/projects/${id}/push`, manifestOf(FILES))).body.missing.length
    expect(await lacks()).toBe(3)
    await pushWith(id, FILES, { 'other.txt': 'other' }, [])
    expect(await lacks()).toBe(2)
    await berth.control('POST', '/clock', { advance: '11m' })
    expect(await lacks()).toBe(3)
    await pushWith(id, FILES, { 'other.txt': 'other' }, [])
    await berth.call('POST', `/projects/${id}/push`, manifestOf({ ...FILES, more: 'x' }))
    expect(await lacks()).toBe(3)
  })
})
