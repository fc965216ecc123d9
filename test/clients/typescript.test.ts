import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OWNER, withOwner } from '../../scripts/packaging/owner.ts'
import { temporaryFolder } from '../cli/command.ts'
import { until } from '../support/processes.ts'
import { command as berth } from '../support/serve.ts'
import {
  buildPackage,
  expectEveryCall,
  PACKAGES,
  PATIENCE_MS,
  ROOT,
  run,
  runSuite,
  TYPESCRIPT_TOOLS,
} from './suite.ts'

const skipped = await buildPackage('typescript')
if (skipped) console.error(skipped)

describe.skipIf(skipped !== null)('the client for TypeScript, as it is installed', () => {
  const folder = temporaryFolder()
  const directory = folder.path
  afterAll(() => folder[Symbol.dispose]())

  beforeAll(async () => {
    cpSync(join(import.meta.dir, 'typescript'), directory, { recursive: true })
    const [tarball = ''] = new Bun.Glob('*.tgz').scanSync(join(PACKAGES, 'typescript'))
    const packed = join(PACKAGES, 'typescript', tarball)
    const install = ['npm', 'install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error', packed]
    expect(await run(install, { cwd: directory })).toMatchObject({ exitCode: 0 })
    mkdirSync(join(directory, 'node_modules/@types'), { recursive: true })
    for (const name of ['@types/node', 'undici-types'])
      symlinkSync(join(TYPESCRIPT_TOOLS, name), join(directory, 'node_modules', name))
  }, PATIENCE_MS)

  test(
    'has types for nodenext and bundler, without those of Bun, and needs openapi-fetch alone',
    async () => {
      const compile = [join(TYPESCRIPT_TOOLS, '.bin/tsc'), '--project', directory]
      expect(await run(compile, { cwd: directory })).toEqual({ exitCode: 0, output: '' })
      // The compiler of the next version, which takes a tenth of the time. The types themselves have been checked above.
      const newest = [
        join(ROOT, 'node_modules/.bin/tsc'),
        '--project',
        directory,
        '--skipLibCheck',
        '--noEmit',
      ]
      const bundler = ['--module', 'esnext', '--moduleResolution', 'bundler']
      expect(await run([...newest, ...bundler], { cwd: directory })).toEqual({ exitCode: 0, output: '' })
      const packages = readdirSync(join(directory, 'node_modules')).filter((name) => !name.startsWith('.'))
      const linked = ['@types', 'undici-types']
      expect(packages.filter((name) => !linked.includes(name)).sort()).toEqual([
        `@${OWNER}`,
        'openapi-fetch',
        'openapi-typescript-helpers',
      ])
    },
    PATIENCE_MS,
  )

  // Each has an instance of its own, and waits most of its time.
  test.concurrent(
    'makes every call under Node.js',
    async () => {
      const command = ['node', '--test', '--test-reporter=tap', 'built/calls.js']
      expectEveryCall(await runSuite(command, directory), /^(?: {4})?ok \d+ - ([\w-]+)$/gm)
    },
    PATIENCE_MS,
  )

  test.concurrent(
    'makes every call under Bun',
    async () => {
      cpSync(join(directory, 'built/calls.js'), join(directory, 'built/calls.test.js'))
      const command = ['bun', 'test', '--timeout', '60000', './built/calls.test.js']
      expectEveryCall(await runSuite(command, directory), /^\(pass\) ([\w-]+)/gm)
    },
    PATIENCE_MS,
  )

  test('is a CommonJS module too, with the same classes in both of its parts', async () => {
    const script = withOwner(`
      const { Berth, NotFoundError } = require('@owner/berth-client')
      const { berth } = require('@owner/berth-client/testing')
      berth.account().then(async (account) => {
        const error = await account.servers.get('srv_missing').catch((thrown) => thrown)
        console.log(account instanceof Berth, error instanceof NotFoundError)
        await account.remove()
      })`)
    const ended = await runSuite(['node', '--eval', script], directory)
    expect(ended).toEqual({ exitCode: 0, output: 'true true\n' })
  })

  test('warns once if the instance has another version', async () => {
    const script = withOwner(`
      const { berth } = require('@owner/berth-client/testing')
      berth.account().then(async (account) => {
        const headers = { 'x-berth-version': '99.0.0' }
        const respond = { status: 200, content_type: 'application/json', headers, body: '{"servers":[]}' }
        await account.fail('servers.list', { respond })
        console.log((await account.servers.list()).length, (await account.servers.list()).length)
        await account.remove()
      })`)
    const { exitCode, output } = await runSuite(['node', '--eval', script], directory)
    expect([exitCode, output.match(/BerthVersionWarning: .* has version 99\.0\.0/g)?.length]).toEqual([0, 1])
  })

  test('says what is missing where nothing says where berth is', async () => {
    const script = withOwner("new (require('@owner/berth-client').Berth)()")
    expect((await run(['node', '--eval', script], { cwd: directory })).output).toContain(
      'BERTH_BASE_URL is not set. Run the program by "berth run -- …"',
    )
    const wrong = withOwner(
      "new (require('@owner/berth-client').Berth)({ baseUrl: '127.0.0.1:4747', apiKey: 'sk_live_x' })",
    )
    expect((await run(['node', '--eval', wrong], { cwd: directory })).output).toContain(
      '"127.0.0.1:4747", which is no http or https URL',
    )
    const testing = withOwner("require('@owner/berth-client/testing').berth.instance()")
    const node = Bun.which('node') ?? ''
    const { output } = await run([node, '--eval', testing], { cwd: directory, env: { PATH: '/nowhere' } })
    expect(output).toContain(`run "npm install --save-dev @${OWNER}/berth"`)
  })

  describe('without BERTH_BASE_URL', () => {
    const executable = join(directory, 'berth')
    const environment = { BERTH_EXECUTABLE: executable, TMPDIR: join(directory, 'temporary') }
    /** Waits until instances have ended, and nothing of them is left. */
    const haveEnded = (addresses: readonly string[]): Promise<void> =>
      until(
        async () => {
          const answers = await Promise.allSettled(addresses.map((address) => fetch(address)))
          const left = readdirSync(environment.TMPDIR)
          return left.length === 0 && answers.every(({ status }) => status === 'rejected')
        },
        `the end of ${addresses.join(', ')}`,
      )
    beforeAll(() => {
      mkdirSync(environment.TMPDIR)
      writeFileSync(executable, `#!/bin/sh\nexec ${berth.join(' ')} "$@"\n`, { mode: 0o755 })
      mkdirSync(join(directory, 'workers'))
      for (const name of ['one', 'two', 'three'])
        writeFileSync(
          join(directory, `workers/${name}.test.mjs`),
          withOwner(`import { test } from 'node:test'
            import { berth } from '@owner/berth-client/testing'
            test('${name}', async () => console.log('at', (await berth.instance()).baseUrl))`),
        )
    })

    test(
      'all workers of a run share one instance, which ends with the run',
      async () => {
        const { exitCode, output } = await run(['node', '--test', 'workers/'], {
          cwd: directory,
          env: environment,
        })
        expect(`${exitCode}\n${output}`).toStartWith('0\n')
        const addresses = [...output.matchAll(/at (http:\S+)/g)].map(([, address = '']) => address)
        expect([addresses.length, new Set(addresses).size]).toEqual([3, 1])
        await haveEnded(addresses)
      },
      PATIENCE_MS,
    )

    test('the executable of the package of berth is used if the project has it', async () => {
      const installed = join(directory, `node_modules/@${OWNER}/berth`)
      mkdirSync(installed)
      writeFileSync(join(installed, 'package.json'), JSON.stringify({ main: 'index.js' }))
      writeFileSync(join(installed, 'index.js'), `module.exports = { path: ${JSON.stringify(executable)} }`)
      const script = withOwner(
        "require('@owner/berth-client/testing').berth.instance().then(({ baseUrl }) => console.log(baseUrl))",
      )
      const { BERTH_EXECUTABLE: _, ...without } = environment
      const { output } = await run(['node', '--eval', script], { cwd: directory, env: without })
      expect(output).toStartWith('http://127.0.0.1:')
      await haveEnded([output.trim()])
    })

    test(
      'a run that is killed leaves nothing',
      async () => {
        const script = withOwner(`
        import { berth, startBerth } from '@owner/berth-client/testing'
        const [shared, own] = [await berth.instance(), await (await startBerth()).instance()]
        console.log(shared.baseUrl + ' ' + own.baseUrl)
        process.kill(process.pid, 'SIGKILL')`)
        const killed = await run(['node', '--input-type=module', '--eval', script], {
          cwd: directory,
          env: environment,
        })
        const addresses = killed.output.trim().split(' ')
        expect([killed.exitCode, new Set(addresses).size]).toEqual([137, 2])
        await haveEnded(addresses)
      },
      PATIENCE_MS,
    )
  })
})
