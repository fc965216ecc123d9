import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join, relative } from 'node:path'
import { missingVariables } from '../../../src/hosting/app-runtime/plan.ts'
import { TemplateCatalog } from '../../../src/resources/templates/catalog.ts'
import { copyTemplate, planCopy, removeCopy, run, runsHere, startTemplate } from './app.ts'

const catalog = new TemplateCatalog()
const ids = catalog.list().map(({ id }) => id)
const root = join(import.meta.dir, '../../..')

/** A connection that a client keeps open without asking for anything; resolves when it is there. */
const idle = (port: number) =>
  new Promise<{ closed: Promise<void>; destroy: () => void }>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      resolve({
        closed: new Promise((done) => socket.on('close', () => done())),
        destroy: () => socket.destroy(),
      })
    })
    socket.on('error', reject)
  })

describe.each(ids)('%s', (id) => {
  test.skipIf(!runsHere(id))('needs no installing, no building and no variable to be given', async () => {
    const folder = await copyTemplate(id)
    try {
      const plan = await planCopy(folder)
      expect(plan).toMatchObject({ install: null, build: null })
      expect(plan.health).toBe(plan.start.kind === 'files' ? '/' : '/health')
      expect(missingVariables(plan, new Set())).toEqual([])
    } finally {
      removeCopy(folder)
    }
  })

  test.skipIf(!runsHere(id))(
    'starts as berth finds that it does, answers, and ends at once with 0 on SIGTERM, with clients still there',
    async () => {
      await using app = await startTemplate(id)
      expect((await fetch(app.url)).status).toBe(200)
      expect((await fetch(`${app.url}/no/such/path`)).status).toBe(404)
      const client = await idle(app.port)
      try {
        const ended = await app.stop()
        if (ended) {
          expect(ended.code).toBe(0)
          expect(ended.ms).toBeLessThan(4_500)
          expect(ended.output).toContain('Listening on http://127.0.0.1:')
        }
      } finally {
        client.destroy()
      }
    },
  )

  test.skipIf(!runsHere(id))(
    'starts again on the port that it has just left, and installs nothing',
    async () => {
      await using app = await startTemplate(id)
      await app.stop()
      await app.start()
      expect((await fetch(app.url)).status).toBe(200)
      const names = readdirSync(app.folder)
      expect(names).not.toContain('node_modules')
      expect(names.filter((name) => /^bun\.lock/.test(name))).toEqual([])
    },
  )

  test.skipIf(!runsHere(id))('passes its own tests', async () => {
    const folder = await copyTemplate(id)
    try {
      const names = readdirSync(folder)
      const command = names.includes('package.json')
        ? 'bun test'
        : names.includes('app.py')
          ? 'python3 -m unittest'
          : null
      if (command === null) return expect(names).toContain('index.html')
      const child = run(folder, command)
      const [code, said] = await Promise.all([child.exited, new Response(child.stderr).text()])
      expect(said).toMatch(/\b[1-9]\d* pass\b|^Ran [1-9]\d* tests/m)
      expect(code === 0 ? '' : said).toBe('')
    } finally {
      removeCopy(folder)
    }
  })

  test('names no address outside, apart from examples, and no package', () => {
    const folder = join(root, 'src/resources/templates/apps', id)
    const texts = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8'))
    const addresses = texts.flatMap((text) => text.match(/\bhttps?:\/\/[^\s'"`)<]+/g) ?? [])
    const outside = addresses.filter(
      (address) => !/^http:\/\/(localhost|127\.0\.0\.1|\{host\}|www\.w3\.org\/2000\/svg)/.test(address),
    )
    expect(outside).toEqual([])
    for (const text of texts) expect(text).not.toMatch(/"(dev|peer)?[dD]ependencies"/)
  })
})

/** Templates with TypeScript. */
const typed = ids.filter((id) =>
  readdirSync(join(root, 'src/resources/templates/apps', id)).includes('tsconfig.json'),
)
test.each(typed)('%s is sound by its own tsconfig.json', (id) => {
  const { exitCode, stdout } = Bun.spawnSync([join(root, 'node_modules/.bin/tsc'), '--project', '.'], {
    cwd: join(root, 'src/resources/templates/apps', id),
  })
  expect(stdout.toString()).toBe('')
  expect(exitCode).toBe(0)
})

test.skipIf(!runsHere('python-api'))('python-api keeps to the syntax of Python 3.8', () => {
  const check =
    'import ast,glob,sys\nfor f in glob.glob("**/*.py", recursive=True): ast.parse(open(f).read(), f, feature_version=(3, 8))'
  const { exitCode, stderr } = Bun.spawnSync(['python3', '-c', check], {
    cwd: join(root, 'src/resources/templates/apps/python-api'),
  })
  expect(stderr.toString()).toBe('')
  expect(exitCode).toBe(0)
})

test('a template whose manifest asks for restarts on changes writes nothing into its folder', async () => {
  for (const id of ids.filter(runsHere)) {
    await using app = await startTemplate(id)
    if (!(await planCopy(app.folder)).watch) continue
    await fetch(app.url)
    await app.stop()
    const files = readdirSync(app.folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => relative(app.folder, join(parentPath, name)))
    expect(files.sort()).toEqual([...(await catalog.files(id))].map(({ path }) => path))
  }
})
