import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DetectedApp } from '../../src/resources/projects/model.ts'
import { berthForTests } from '../support/berth.ts'
import { created, logged, settled } from '../support/projects.ts'
import { thorough } from '../support/thorough.ts'

/** What `expect.json` beside the files of a situation says. */
interface Expected {
  /** What a reader has to know of the situation: one sentence. */
  about: string
  /** Programs that a server has to have, and `registry:npm` and the like; without one of them the situation is skipped. */
  needs?: string[]
  /** Directory to name, as with `--directory`. */
  directory?: string
  /** Fields of `app` as the project shows them; a text that begins and ends with `/` is a pattern. */
  app?: Record<string, unknown>
  /** Responses, by path: what their text contains. */
  get?: Record<string, string>
  /** What the log says of why it does not come up. */
  fails?: string
}

/** Registries by the addresses of something small in them. */
const REGISTRIES: Readonly<Record<string, () => string>> = {
  'registry:npm': () => {
    const registry = Bun.spawnSync(['npm', 'config', 'get', 'registry']).stdout.toString().trim()
    return `${registry.replace(/\/$/, '')}/is-number`
  },
  'registry:pypi': () =>
    `${(process.env.PIP_INDEX_URL ?? 'https://pypi.org/simple').replace(/\/$/, '')}/six/`,
  'registry:go': () =>
    `${(process.env.GOPROXY ?? 'https://proxy.golang.org').split(/[,|]/)[0]}/golang.org/x/text/@v/list`,
  'registry:maven': () => 'https://repo.maven.apache.org/maven2/junit/junit/maven-metadata.xml',
}

/** How long a situation may take to come up on a busy machine. */
const PATIENCE_MS = 420_000

const berth = await berthForTests({ flags: { plan: { projects: { large: 100 } } } })
const serverId = await berth.server({ tier: 'large' })

/** Whether what a situation needs is there, each found out once. */
const known = new Map<string, Promise<boolean>>()

function has(need: string): Promise<boolean> {
  const found = known.get(need) ?? find(need)
  known.set(need, found)
  return found
}

async function find(need: string): Promise<boolean> {
  if (need in REGISTRIES && !thorough) return false
  const address = REGISTRIES[need]?.()
  if (address === undefined) return (await berth.exec(serverId, `${need} --version || ${need} version`)).exitCode === 0
  return fetch(address, { signal: AbortSignal.timeout(10_000) }).then(
    ({ ok }) => ok,
    () => false,
  )
}

const languages = readdirSync(import.meta.dir, { withFileTypes: true }).filter((entry) => entry.isDirectory())

for (const { name: language } of languages) {
  describe(`an app of ${language}`, () => {
    const directory = join(import.meta.dir, language)
    for (const name of readdirSync(directory).sort()) {
      const path = join(directory, name)
      const expected: Expected = JSON.parse(readFileSync(join(path, 'expect.json'), 'utf8'))
      test(`${name}: ${expected.about}`, () => check(path, name, expected), PATIENCE_MS + 60_000)
    }
  })
}

async function check(path: string, name: string, expected: Expected): Promise<void> {
  for (const need of expected.needs ?? []) {
    if (await has(need)) continue
    const why = need in REGISTRIES && !thorough ? 'is left to CI and to --all' : 'is not available'
    console.error(`SKIP: ${name}, since ${need} ${why}`)
    return
  }
  const tar = Bun.spawnSync(['tar', '-cz', '--exclude', 'expect.json', '-C', path, '.'])
  const source = {
    ...{ type: 'archive', data: tar.stdout.toString('base64') },
    ...(expected.directory === undefined ? {} : { directory: expected.directory }),
  }
  const { id } = await created(berth, serverId, { name, visibility: 'public', source })
  const project = await settled(berth, id, PATIENCE_MS)
  const log = await logged(berth, id)
  const app = project.app as DetectedApp | undefined
  if (app !== undefined) checkEvidence(path, app)
  if (expected.app !== undefined) expect(app).toMatchObject(withPatterns(expected.app) as object)
  if (expected.fails !== undefined) {
    expect(log).toContain(expected.fails)
    expect(project.init_phase).toBe('failed')
  } else if (project.init_phase !== 'ready') throw new Error(`${project.init_phase}: ${log}`)
  for (const [at, text] of Object.entries(expected.get ?? {})) {
    const response = await fetch(new URL(at, project.url ?? ''), { headers: { accept: 'text/html' } })
    expect(await response.text()).toContain(text)
    expect(response.status).toBe(200)
  }
  await berth.call('DELETE', `/projects/${id}`)
}

/** Looks each piece of evidence up in the file. */
function checkEvidence(path: string, { evidence }: DetectedApp): void {
  for (const { file, line, says } of evidence) {
    const whole = join(path, file)
    expect(existsSync(whole)).toBe(true)
    if (line === null) expect(says).toBe('exists')
    else {
      const text = readFileSync(whole, 'utf8').split(/\r?\n/)[line - 1] ?? ''
      expect(says).toBe(text.trim().slice(0, 200))
    }
  }
}

/** Replaces texts between slashes by the patterns that they are. */
function withPatterns(value: unknown): unknown {
  if (typeof value === 'string' && /^\/.+\/$/.test(value))
    return expect.stringMatching(new RegExp(value.slice(1, -1)))
  if (Array.isArray(value)) return value.map(withPatterns)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withPatterns(one)]))
}
