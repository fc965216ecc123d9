import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { berthForTests } from '../support/berth.ts'
import {
  begun,
  buildLog,
  built,
  HOLD,
  letGo,
  manifest,
  over,
  PHASES,
  reaches,
  type ShownBuild,
  shownBuild,
  statesOf,
  upTo,
} from '../support/builds.ts'
import { readEvents } from '../support/events.ts'
import { until } from '../support/processes.ts'

const berth = await berthForTests({ flags: { plan: { servers: 200 } } })

const write = (serverId: string, path: string, content: string) =>
  berth.call('PUT', `/servers/${serverId}/files`, { path, content })

const read = async (serverId: string, path: string): Promise<string | undefined> =>
  (await berth.call('GET', `/servers/${serverId}/files?path=${encodeURIComponent(path)}`)).body.content

const filesOf = async (serverId: string): Promise<string[]> =>
  (await berth.call('GET', `/servers/${serverId}/files`)).body.files

const statusOf = async (serverId: string): Promise<string> =>
  (await berth.call('GET', `/servers/${serverId}`)).body.server.status

const textOf = async ({ url }: ShownBuild, path = ''): Promise<string> =>
  (await fetch(`${url}${path}`)).text()

const failing = (log: string) => log.split('\n').findLast((line) => line.includes('The build failed'))

describe('a goal becomes an app that answers', () => {
  test.each([
    ['A landing page for a bakery', 'static-site', '', '<!doctype html>'],
    ['build a todo api', 'bun-api', 'tasks', '"tasks":'],
    ['notes', 'sqlite-notes', '', 'Notes'],
    ['A poll for our team', 'fullstack', '', '<!doctype html>'],
    ['chat', 'websocket-chat', '', '<!doctype html>'],
    ['Count the words of a text, in Python', 'python-api', '', '<!doctype html>'],
  ])('%s: from the template %s', async (goal, template, path, answer) => {
    if (template === 'python-api' && Bun.which('python3') === null) return
    const serverId = await berth.server()
    const build = await built(berth, serverId, goal)
    if (build.url === null) throw new Error(await buildLog(berth, serverId, build.id))
    expect(build).toMatchObject({ serverId, goal, status: 'completed' })
    expect(statesOf(build)).toEqual(PHASES.map(() => 'done'))
    expect((await textOf(build, path)).toLowerCase()).toContain(answer.toLowerCase())

    const files = await filesOf(serverId)
    expect(build.artifacts.length).toBeGreaterThan(5)
    expect(files).toEqual(expect.arrayContaining(build.artifacts))
    expect(build.artifacts).toContain('README.md')
    const plan = await read(serverId, 'PLAN.md')
    expect(plan).toContain(`> ${goal}\n`)
    expect(plan).toContain(`The template **${template}**.`)
    expect(plan).toContain('Nothing was implemented')
    expect((await berth.call('GET', `/servers/${serverId}`)).body.server).toMatchObject({
      status: 'running',
      publicUrl: build.url,
    })
    await berth.call('DELETE', `/servers/${serverId}`)
  })

  test('what the agent does stands in the log, the plan and the artifacts', async () => {
    const serverId = await berth.server()
    const goal =
      'A landing page\nwrite: index.html <<< hello from the agent\nrun: echo printed; rm robots.txt'
    const build = await built(berth, serverId, goal)
    expect(await textOf(build)).toBe('hello from the agent')
    expect(build.artifacts).toContain('index.html')
    expect(build.artifacts).not.toContain('robots.txt')
    const log = await buildLog(berth, serverId, build.id)
    expect(log).toContain('implement: printed')
    expect(log).toContain('implement: Changed: index.html.')
    expect(log).toContain('implement: Removed: robots.txt.')
    const plan = await read(serverId, 'PLAN.md')
    expect(plan).toContain('- Changed: index.html.')
    expect(plan).not.toContain('Nothing was implemented')
  })

  test('packages are installed and the app is built, once each', async () => {
    const serverId = await berth.server()
    await write(serverId, 'index.html', 'x')
    const commands = {
      install: 'echo i >> counted; echo installing',
      build: 'echo b >> counted; mkdir -p out; echo built > out/index.html',
    }
    await write(serverId, 'berth.json', JSON.stringify({ ...commands, static: { folder: 'out' } }))
    const build = await built(berth, serverId, 'Go on')
    expect(await textOf(build)).toBe('built\n')
    expect(await read(serverId, 'counted')).toBe('i\nb\n')
    expect(build.artifacts).toEqual(['PLAN.md', 'counted', 'out/index.html'])
    expect(await buildLog(berth, serverId, build.id)).toContain('install: installing')
  })

  test('a build makes no task and no event but deployment.live', async () => {
    const serverId = await berth.server()
    await built(berth, serverId, 'A landing page')
    expect((await berth.call('GET', `/servers/${serverId}/tasks`)).body.tasks).toEqual([])
    const { events } = (await berth.control('GET', '/events')).body
    const names = events
      .filter(({ data }: { data: { server_id?: string } }) => data.server_id === serverId)
      .map(({ event }: { event: string }) => event)
    expect(names.sort()).toEqual(['deployment.live', 'server.created'])
  })
})

describe('what is in the workspace', () => {
  test('files that are there stay, and are named in the plan', async () => {
    const serverId = await berth.server()
    await write(serverId, 'README.md', 'mine')
    await write(serverId, 'PLAN.md', 'my own plan')
    await write(serverId, 'script.js/inside.txt', 'a folder where the template has a file')
    const build = await built(berth, serverId, 'A landing page')
    expect(build.url).not.toBeNull()
    expect(await read(serverId, 'README.md')).toBe('mine')
    expect(await read(serverId, 'PLAN.md')).toBe('my own plan')
    expect(await read(serverId, 'script.js/inside.txt')).toStartWith('a folder')
    expect(await read(serverId, 'PLAN-2.md')).toContain('stay as they are: `README.md`, `script.js`.')
    expect(await buildLog(berth, serverId, build.id)).toContain(
      'Wrote PLAN-2.md: the PLAN.md that is there is yours.',
    )
    expect(build.artifacts).not.toContain('README.md')
    expect(build.artifacts).toContain('PLAN-2.md')
  })

  test('an app that is there is gone on with, whatever the goal says', async () => {
    const serverId = await berth.server()
    await write(serverId, 'index.html', 'my page')
    const build = await built(berth, serverId, 'build a todo api')
    expect(await textOf(build)).toBe('my page')
    expect(await filesOf(serverId)).toEqual(['PLAN.md', 'index.html'])
    expect(await read(serverId, 'PLAN.md')).toContain('The app that is there already: static files.')
  })

  test('an untouched template gives way to another one; data, and what was there before, stay', async () => {
    const serverId = await berth.server()
    await write(serverId, 'mine.txt', 'mine')
    await built(berth, serverId, 'notes')
    await write(serverId, 'data/more.txt', 'of the app')
    const build = await built(berth, serverId, 'A landing page for a bakery')
    expect(await textOf(build)).toContain('<!doctype html>')
    const files = await filesOf(serverId)
    expect(files).toEqual(expect.arrayContaining(['mine.txt', 'data/more.txt', 'index.html', 'PLAN.md']))
    expect(files.filter((path) => path.startsWith('src/') || path === 'package.json')).toEqual([])
    expect(await read(serverId, 'PLAN.md')).toContain('copied from sqlite-notes and nobody has changed: ')
  })

  test.each([
    ['was changed', (serverId: string) => write(serverId, 'src/notes.ts', '// mine')],
    [
      'was removed',
      (serverId: string) => berth.call('DELETE', `/servers/${serverId}/files?path=tsconfig.json`),
    ],
    ['was added', (serverId: string) => write(serverId, 'src/extra.ts', '// mine')],
  ])('a template in which a file %s stays', async (what, change) => {
    const serverId = await berth.server()
    // What it publishes makes no difference, and would take its time to start.
    await built(berth, serverId, 'notes\nfail: No more for now.')
    await change(serverId)
    const build = await built(berth, serverId, 'A landing page for a bakery\nfail: No more for now.')
    expect(build.artifacts).toEqual(['PLAN.md'])
    expect(await read(serverId, 'PLAN.md')).toContain(`since then `)
    expect(await read(serverId, 'PLAN.md')).toContain(what)
    expect(await filesOf(serverId)).not.toContain('index.html')
  })

  test('a goal that speaks for no other template goes on with the one that is there', async () => {
    const serverId = await berth.server()
    await built(berth, serverId, 'notes\nfail: No more for now.')
    const build = await built(berth, serverId, 'Make it blue, on every page\nfail: No more for now.')
    expect(build.artifacts).toEqual(['PLAN.md'])
    expect(await filesOf(serverId)).toContain('src/notes.ts')
  })

  test('what an agent made of a template stays, also where the build failed', async () => {
    const serverId = await berth.server()
    await built(berth, serverId, 'notes\nwrite: src/notes.ts <<< // better\nfail: Not done.')
    await built(berth, serverId, 'A landing page for a bakery\nfail: No more for now.')
    expect(await read(serverId, 'src/notes.ts')).toBe('// better')
  })

  test('files of projects are not its business', async () => {
    const serverId = await berth.server()
    const { slug } = (await berth.call('POST', `/servers/${serverId}/projects`, { name: 'apart' })).body
    const goal = `A landing page\nwrite: projects/${slug}/index.html <<< written`
    const build = await built(berth, serverId, goal)
    expect(build.artifacts.filter((path) => path.startsWith('projects/'))).toEqual([])
  })

  test.each(['mkdir PLAN.md', 'ln -s /etc/hostname PLAN.md'])(
    'whatever takes the place of the plan meanwhile stays, and is reported (%s)',
    async (command) => {
      const serverId = await berth.server()
      const build = await built(berth, serverId, `A landing page\nrun: rm PLAN.md; ${command}`)
      expect(build.url).not.toBeNull()
      expect(await buildLog(berth, serverId, build.id)).toContain(
        'berth: The plan is not brought up to date: "PLAN.md"',
      )
    },
  )
})

describe('a build that fails', () => {
  test.each([
    ['implement', 'fail: The oven is cold.', 'The oven is cold.'],
    ['install', manifest({ install: 'echo no oven here; exit 3' }), 'exit code 3'],
    ['build', manifest({ build: 'echo no oven here; exit 4' }), 'exit code 4'],
    ['deploy', manifest({ start: 'echo no oven here; exit 5' }), 'no oven here'],
    ['install', manifest({ prot: 1 }), 'prot'],
  ])('in %s is over without a URL, and its log tells why', async (key, directive, why) => {
    const serverId = await berth.server()
    const build = await built(berth, serverId, `A landing page\n${directive}`)
    expect(build).toMatchObject({ status: 'completed', url: null })
    expect(statesOf(build)).toEqual(upTo(key))
    const log = await buildLog(berth, serverId, build.id)
    expect(failing(log)).toContain(`berth: The build failed in the phase ${key}: `)
    expect(log).toContain(why)
    expect(await read(serverId, 'PLAN.md')).toContain(`It failed in the phase ${key}: `)
    expect(await filesOf(serverId)).toEqual(expect.arrayContaining(build.artifacts))
    expect(build.artifacts).toContain('index.html')
    expect(await statusOf(serverId)).toBe('running')
  })

  test('leaves what was published before, and the next one fixes it', async () => {
    const serverId = await berth.server()
    const first = await built(berth, serverId, 'A landing page\nwrite: index.html <<< first')
    const broken = await built(berth, serverId, `Go on\n${manifest({ start: 'exit 5' })}`)
    expect(broken.url).toBeNull()
    expect(await textOf(first)).toBe('first')
    const fixed = await built(berth, serverId, 'Go on\nrun: rm berth.json\nwrite: index.html <<< second')
    expect(fixed.url).toBe(first.url)
    expect(await textOf(fixed)).toBe('second')
  })

  test.each(['runs', 'sleeps'])(
    'an app that restarts when its files change is left alone while a build changes them, also where its server %s',
    async (before) => {
      const serverId = await berth.server()
      const { url } = await built(berth, serverId, 'build a todo api')
      const answer = async () => (await fetch(url ?? '')).text()
      if (before === 'sleeps') await berth.call('POST', `/servers/${serverId}/actions`, { action: 'stop' })
      const half =
        'Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response("half done") })'
      const goal = `Go on\nrun: sleep 0.5\nwrite: src/server.ts <<< ${half}\n${HOLD}\nfail: Not done.`
      const id = await begun(berth, serverId, goal)
      await until(async () => (await read(serverId, 'src/server.ts')) === half, 'the file is changed')
      // Much longer than the quiet after which a change counts, and an app takes to start.
      await Bun.sleep(1_000)
      expect(await answer()).toContain('bun-api')
      await letGo(berth, serverId)
      expect((await over(berth, serverId, id)).url).toBeNull()
      // From now on its files are watched again.
      await write(serverId, 'src/server.ts', half.replace('half', 'all'))
      await until(async () => (await answer()) === 'all done', 'it restarts', 20_000)
    },
  )
})

describe('requests', () => {
  test('a goal is a text that says something, of at most 100,000 characters', async () => {
    const serverId = await berth.server()
    for (const goal of [undefined, 5, '', '   \n', 'x'.repeat(100_001)]) {
      const { status, body } = await berth.call('POST', `/servers/${serverId}/builds`, { goal })
      expect([status, body.error]).toEqual([400, 'bad_request'])
      expect(body.message).toContain('"goal"')
    }
    const long = await begun(berth, serverId, `fail: At once.\n${'x'.repeat(100_000 - 20)}`)
    expect((await over(berth, serverId, long)).goal).toHaveLength(100_000 - 5)
    expect((await berth.call('GET', `/servers/${serverId}/builds`)).body.builds).toHaveLength(1)
  })

  test('a build of another server, or of none, is not found', async () => {
    const [serverId, other] = [await berth.server(), await berth.server()]
    const { id } = await built(berth, serverId, 'fail: At once.')
    for (const path of [`/servers/${other}/builds/${id}`, `/servers/${serverId}/builds/bld_x`]) {
      for (const end of ['', '/logs']) {
        const { status, body } = await berth.call('GET', `${path}${end}`)
        expect([status, body.error]).toEqual([404, 'not_found'])
      }
    }
  })
})

describe('logs', () => {
  test('as an event stream they come as they happen, and end with the build', async () => {
    const serverId = await berth.server()
    const id = await begun(berth, serverId, `A landing page\n${HOLD}\nrun: echo the last words`)
    await reaches(berth, serverId, id, 'implement')
    const response = await berth.fetch(`/servers/${serverId}/builds/${id}/logs`, {
      headers: { accept: 'text/event-stream' },
    })
    const texts: string[] = []
    for await (const { event, data } of readEvents(response)) {
      expect(event).toBe('line')
      texts.push(`${data.source}: ${data.text}`)
      if (data.text === 'The agent works on the goal.') await letGo(berth, serverId)
    }
    expect(texts[0]).toBe('berth: Goal: A landing page…')
    expect(texts).toContain('implement: the last words')
    expect(texts.at(-1)).toBe(`deploy: It answers at ${(await shownBuild(berth, serverId, id)).url}`)
    expect(texts.join('\n')).toBe(await buildLog(berth, serverId, id))
    const replayed = await berth.fetch(`/servers/${serverId}/builds/${id}/logs?tail=2`, {
      headers: { accept: 'text/event-stream' },
    })
    const again: string[] = []
    for await (const { data } of readEvents(replayed)) again.push(`${data.source}: ${data.text}`)
    expect(again).toEqual(texts.slice(-2))
  })

  test('secrets show in no log, plan or record', async () => {
    const serverId = await berth.server()
    await berth.call('PUT', '/secrets', { server_id: serverId, secrets: { TOKEN: 'hunter2-and-more' } })
    const goal =
      'A landing page\nrun: echo "it is $TOKEN"; echo $TOKEN > token.txt\nfail: because of hunter2-and-more'
    const { id, artifacts } = await built(berth, serverId, goal)
    expect(await read(serverId, 'token.txt')).toBe('hunter2-and-more\n')
    const log = await buildLog(berth, serverId, id)
    expect(log).toContain('it is ***')
    expect(log).toContain('because of ***')
    expect(log + artifacts.join()).not.toContain('hunter2')
    expect(await read(serverId, 'PLAN.md')).not.toContain('hunter2')
  })

  test('those of the last 20 builds of a server are kept', async () => {
    const serverId = await berth.server()
    await write(serverId, 'index.html', 'x')
    const ids: string[] = []
    for (let n = 0; n < 22; n += 1) ids.push((await built(berth, serverId, 'fail: At once.')).id)
    expect(readdirSync(join(berth.dataDir, 'logs/builds', serverId)).sort()).toEqual(ids.slice(2).sort())
    expect(await buildLog(berth, serverId, ids[0] ?? '')).toBe('')
  })

  test('of one that is over it stays, however many wait behind it', async () => {
    const serverId = await berth.server()
    const first = await begun(berth, serverId, `${HOLD}\nfail: In the end.`)
    const second = await begun(berth, serverId, 'run: sleep 600')
    for (let n = 0; n < 20; n += 1) await begun(berth, serverId, 'fail: At once.')
    await letGo(berth, serverId)
    await reaches(berth, serverId, second, 'implement')
    expect(await buildLog(berth, serverId, first)).toContain('In the end.')
    await berth.call('DELETE', `/servers/${serverId}`)
  })
})
