import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../../package.json'
import { OWNER, withOwner } from '../../scripts/packaging/owner.ts'
import OPERATIONS from '../../src/clients/operations.json'
import { temporaryFolder } from '../cli/command.ts'
import { until } from '../support/processes.ts'
import {
  buildPackage,
  expectEveryCall,
  PACKAGES,
  PATIENCE_MS,
  programs,
  ROOT,
  run,
  runSuite,
} from './suite.ts'

const MODULE = withOwner('github.com/owner/berth-go')

/** Verbs that are about all of a noun. */
const PLURAL = ['list', 'clear', 'replace']

/** The types of the handles that operations.json names. */
const TYPES: Readonly<Record<string, string>> = { berth: 'Client', testing: 'Instance' }

const upper = (name: string): string => name.slice(0, 1).toUpperCase() + name.slice(1)

/** Returns the Go method of a method of operations.json. */
function goMethod(method: string): string {
  const exception = (OPERATIONS.go as Readonly<Record<string, string>>)[method]
  if (exception !== undefined) return exception
  const [handle = '', ...names] = method.split('.')
  const verb = names.pop() ?? ''
  const [noun = ''] = names
  return `${TYPES[handle] ?? upper(handle)}.${upper(verb)}${upper(PLURAL.includes(verb) ? noun : noun.replace(/s$/, ''))}`
}

test('the Go client has every method of the table, by its rule', () => {
  const source = ['', 'berthtest'].flatMap((directory) => {
    const path = join(ROOT, 'src/clients/go', directory)
    const files = readdirSync(path).filter((name) => name.endsWith('.go'))
    return files.map((name) => readFileSync(join(path, name), 'utf8'))
  })
  const declared = [...source.join('\n').matchAll(/^func \(\w+ \*(\w+)\) ([A-Z]\w*)\(/gm)]
  const methods = new Set(declared.map(([, type, name]) => `${type}.${name}`))
  const wanted = Object.values(OPERATIONS.methods).flat().map(goMethod)
  expect(wanted.filter((method) => !methods.has(method))).toEqual([])
  const sentinels = new Set(
    Object.values(OPERATIONS.errors).map((name) => `Err${name.replace(/Error$/, '')}`),
  )
  expect([...sentinels].filter((name) => !source.join('\n').includes(`\t${name} = errors.New(`))).toEqual([])
})

const skipped = await buildPackage('go')
if (skipped) console.error(skipped)

describe.skipIf(skipped !== null)('the client for Go, as go get fetches it', () => {
  const folder = temporaryFolder()
  const directory = folder.path
  afterAll(() => folder[Symbol.dispose]())

  /** The module comes from the files that were built, what it depends on from this machine's cache or proxy. */
  const environment: Record<string, string> = {
    GOFLAGS: '-mod=mod -modcacherw -trimpath',
    GOMODCACHE: join(directory, 'modules'),
    GONOSUMDB: '*',
    GOTOOLCHAIN: 'local',
    GOWORK: 'off',
  }

  beforeAll(async () => {
    const suite = join(import.meta.dir, 'go')
    for (const path of readdirSync(suite, { recursive: true, encoding: 'utf8' })) {
      if (!path.endsWith('.go')) continue
      mkdirSync(join(directory, 'suite', path, '..'), { recursive: true })
      writeFileSync(join(directory, 'suite', path), withOwner(readFileSync(join(suite, path), 'utf8')))
    }
    const [cache, proxy] = (
      await run(['go', 'env', 'GOMODCACHE', 'GOPROXY'], { cwd: directory })
    ).output.split('\n')
    environment.GOPROXY = `file://${PACKAGES}/go-proxy,file://${cache}/cache/download,${proxy}`
    const [, least = ''] = /^go (\S+)$/m.exec(readFileSync(join(PACKAGES, 'go/go.mod'), 'utf8')) ?? []
    writeFileSync(join(directory, 'suite/go.mod'), `module suite\n\ngo ${least}\n`)
    const get = ['go', 'get', `${MODULE}@v${version}`]
    expect(await run(get, { cwd: join(directory, 'suite'), env: environment })).toMatchObject({ exitCode: 0 })
  }, PATIENCE_MS)

  const go = (...command: string[]) =>
    run(['go', ...command], { cwd: join(directory, 'suite'), env: environment })

  test(
    'needs the runtime of the generated layer alone, and no tool',
    async () => {
      const { output } = await go(
        'list',
        '-f',
        '{{if not .Standard}}{{.Module.Path}}{{end}}',
        '-deps',
        MODULE,
      )
      expect([...new Set(output.trim().split('\n'))].sort()).toEqual(
        [
          'github.com/apapsch/go-jsonmerge/v2',
          'github.com/google/uuid',
          'github.com/oapi-codegen/runtime',
          MODULE,
        ].sort(),
      )
      expect(readFileSync(join(PACKAGES, 'go/go.mod'), 'utf8')).not.toMatch(/^tool\b|^replace\b/m)
    },
    PATIENCE_MS,
  )

  test(
    'makes every call',
    async () => {
      const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
      const command = ['env', ...variables, 'go', 'test', '-v', '-vet=off', '-count=1', '.']
      expectEveryCall(await runSuite(command, join(directory, 'suite')), /^ +--- PASS: TestCalls\/(\S+)/gm)
    },
    PATIENCE_MS,
  )

  test(
    'the program and the test of docs/clients.md run',
    async () => {
      const page = readFileSync(join(ROOT, 'docs/clients.md'), 'utf8').replaceAll('OWNER', OWNER)
      const [program = '', suite = ''] = [...page.matchAll(/^```go\n([\s\S]*?)^```$/gm)].map(
        ([, text = '']) => text,
      )
      for (const [file, text] of [
        ['program/main.go', program],
        ['report/report_test.go', suite],
      ] as const) {
        mkdirSync(join(directory, 'suite', file, '..'))
        writeFileSync(join(directory, 'suite', file), text)
      }
      const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
      const ran = await runSuite(['env', ...variables, 'go', 'run', './program'], join(directory, 'suite'))
      expect(`${ran.exitCode}\n${ran.output}`).toStartWith('0\n')
      for (const part of [' [0 255]\n', 'http://127.0.0.1:', 'completed ', '(not_found, req_'])
        expect(ran.output).toContain(part)
      const tested = await runSuite(['env', ...variables, 'go', 'test', './report'], join(directory, 'suite'))
      expect(`${tested.exitCode}\n${tested.output}`).toStartWith('0\nok')
    },
    PATIENCE_MS,
  )

  describe('without BERTH_BASE_URL', () => {
    const temporary = join(directory, 'temporary')
    const binary = join(directory, 'own.test')
    const own = (name: string, env: Record<string, string>) =>
      run([binary, '-test.v', `-test.run=^${name}$`], { cwd: directory, env: { TMPDIR: temporary, ...env } })
    const executable = () => join(programs(directory), 'berth')

    beforeAll(async () => {
      mkdirSync(temporary)
      expect(await go('test', '-c', '-o', binary, './own')).toMatchObject({ exitCode: 0 })
    }, PATIENCE_MS)

    /** Expects that the instances of a run have ended, with all that they made. */
    const expectGone = async (output: string) => {
      const addresses = [...output.matchAll(/at (http:\S+)/g)].map(([, address = '']) => address)
      expect(new Set(addresses).size).toBe(2)
      await until(() => readdirSync(temporary).length === 0, 'the temporary directory is empty')
      for (const address of addresses) await expect(fetch(address)).rejects.toThrow()
    }

    test(
      'a test binary has one instance, and a test one of its own, which end with it',
      async () => {
        const { exitCode, output } = await own('TestInstances', { BERTH_EXECUTABLE: executable() })
        expect(`${exitCode}\n${output}`).toStartWith('0\n')
        await expectGone(output)
      },
      PATIENCE_MS,
    )

    test(
      'a test binary that is killed leaves nothing',
      async () => {
        const { exitCode, output } = await own('TestInstances', { BERTH_EXECUTABLE: executable(), KILL: '1' })
        expect(exitCode).toBe(137)
        await expectGone(output)
      },
      PATIENCE_MS,
    )

    test(
      'says how to get berth if it is missing, and what is wrong if it cannot start',
      async () => {
        const missing = await own('TestInstances', { PATH: '/nowhere', BERTH_EXECUTABLE: '' })
        expect(missing.exitCode).toBe(1)
        expect(missing.output).toContain(`npm install --global @${OWNER}/berth`)
        const broken = await own('TestInstances', {
          BERTH_EXECUTABLE: executable(),
          BERTH_ISOLATION: 'stone',
        })
        expect(broken.exitCode).toBe(1)
        expect(broken.output).toContain('did not start an instance')
        expect(broken.output).toContain('stone')
      },
      PATIENCE_MS,
    )
  })
})
