import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { namesIn } from '../../src/runtime/if-present.ts'
import { STAGED } from '../../src/storage/state.ts'
import { END_SIGNAL, isLocalCompute } from '../support/compute.ts'
import { processesOf, until } from '../support/processes.ts'
import { archiveOf } from '../support/projects.ts'
import { call, type ServeProcess, serve } from '../support/serve.ts'
import { rounds } from '../support/thorough.ts'

/** What is there after berth was killed amid a push: the files of one version, and it says which. */

let folder: string
let berth: ServeProcess
let info: Info
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'berth-push-crash-'))
  info = await start()
})
afterEach(async () => {
  await kill(END_SIGNAL)
  await until(() => processesOf(folder).length === 0, 'no process to be left', 20_000)
  rmSync(folder, { recursive: true, force: true })
})

const start = () => {
  berth = serve(['--port', '0', '--data', folder, '--log-level', 'error', '--isolation', 'none'])
  return berth.ready
}

const kill = async (signal: NodeJS.Signals = 'SIGKILL') => {
  berth.child.kill(signal)
  await berth.child.exited
}

const startAgain = async () => {
  await kill()
  info = await start()
}

type Info = Awaited<ReturnType<typeof start>>
type Files = Record<string, string>

/** How often berth is killed at any moment. */
const KILLS = rounds({ usually: 4, inCi: 12, withAll: 50 })

const FILES = 100

/** An app of many files, each of which says the version, and answers with all versions that it sees. */
function versionOf(version: string, extra: Files = {}): Files {
  const parts = Array.from({ length: FILES }, (_, i) => [`parts/${i}.txt`, version] as const)
  return {
    'berth.json': JSON.stringify({
      install: 'cat parts/0.txt >> installs',
      build: 'cat parts/0.txt > built',
      start: 'bun app.ts',
    }),
    'app.ts': `import { readFileSync, readdirSync } from 'node:fs'
      const read = (path) => readFileSync(path, 'utf8')
      const seen = new Set([...readdirSync('parts').map((name) => read('parts/' + name)), read('built')])
      Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response([...seen].join(' ')) })`,
    ...Object.fromEntries(parts),
    [`only-${version}.txt`]: version,
    ...extra,
  }
}

const sha256 = (content: string) => new Bun.CryptoHasher('sha256').update(content).digest('hex')

const described = (files: Files) =>
  Object.entries(files).map(([path, content]) => ({ path, sha256: sha256(content) }))

/** Pushes all files in one request. A push that a kill cuts short is null. */
async function push(path: string, files: Files, extra: object = {}): Promise<{ status: number } | null> {
  const form = new FormData()
  form.set('files', JSON.stringify(described(files)))
  for (const [name, value] of Object.entries(extra)) form.set(name, JSON.stringify(value))
  form.set('archive', new Blob([Buffer.from((await archiveOf(files)).data, 'base64')]))
  const headers = { authorization: `Bearer ${info.api_key}` }
  return fetch(`${info.base_url}${path}`, { method: 'POST', body: form, headers }).catch(() => null)
}

/** Returns what an app answers, as soon as its site is open. */
async function text(url: string): Promise<string> {
  let answer: Response | null = null
  await until(async () => {
    answer = await fetch(url).catch(() => null)
    return answer !== null
  }, 'the site to be open')
  return (answer as Response | null)?.text() ?? ''
}

/** Returns the versions of the files of an app, without what its build made. */
async function versionsIn(server: string, directory: string): Promise<string[]> {
  const command = `cd "./${directory}" && for file in only-*.txt parts/*; do [ ! -f $file ] || { cat $file; echo; }; done`
  const { body } = await call(info, 'POST', `/servers/${server}/exec`, { command })
  if (body.exitCode !== 0) throw new Error(JSON.stringify(body))
  return [...new Set<string>(body.stdout.split('\n').filter(Boolean))]
}

/** Returns the content of a file; undefined if there is none. */
const contentOf = async (server: string, path: string): Promise<string | undefined> =>
  (await call(info, 'GET', `/servers/${server}/files?path=${path}`)).body.content

const partOf = (server: string, directory: string) => contentOf(server, `${directory}parts/${FILES / 2}.txt`)

/** Waits until nothing is kept of an earlier version: beside a workspace of this machine, in the data directory for others. */
const nothingKept = (server: string): Promise<void> => {
  const staging = join(folder, isLocalCompute ? join('servers', server, 'staging') : STAGED)
  return until(() => namesIn(staging).length === 0, 'nothing to be kept', 10_000)
}

const projectOf = async (id: string) => (await call(info, 'GET', `/projects/${id}`)).body
const deploymentOf = async (server: string) =>
  (await call(info, 'GET', `/servers/${server}/deployments`)).body.deployments[0]
const logOf = async (path: string): Promise<string> => JSON.stringify((await call(info, 'GET', path)).body)

/** A version whose build goes on until berth is killed. */
const stuck = (version: string): Files => {
  const files = versionOf(version)
  const plan = JSON.parse(files['berth.json'] ?? '')
  return {
    ...files,
    'berth.json': JSON.stringify({ ...plan, build: `${plan.build}; touch stuck; sleep 600` }),
  }
}

const UNDONE = /berth was ended before the (?:push|deploy) came up\. The files of the version before are back/

describe('kill -9 while a pushed version is built', () => {
  test('leaves a deployment with the files, the packages and the build of the version before, and says so', async () => {
    const server: string = (await call(info, 'POST', '/servers')).body.id
    const path = `/servers/${server}/deployments/push`
    expect((await push(path, versionOf('one'), { clean: true }))?.status).toBe(200)
    const { url } = await deploymentOf(server)
    const cut = push(path, stuck('two'), { clean: true })
    await until(async () => (await contentOf(server, 'stuck')) !== undefined, 'the build')
    expect(await versionsIn(server, '')).toEqual(['two'])
    await startAgain()
    expect(await cut).toBe(null)
    await until(async () => (await deploymentOf(server)).live, 'the version before', 20_000)
    expect(await text(url)).toBe('one')
    expect(await versionsIn(server, '')).toEqual(['one'])
    expect((await deploymentOf(server)).failed_change.reason).toMatch(UNDONE)
    expect(await logOf(`/servers/${server}/deployments/logs`)).toMatch(UNDONE)
    await nothingKept(server)
    await startAgain()
    expect((await deploymentOf(server)).url).toBe(url)
    await until(async () => (await deploymentOf(server)).live, 'the version before', 20_000)
    expect((await deploymentOf(server)).failed_change.reason).toMatch(UNDONE)
    expect((await push(path, versionOf('three'), { clean: true }))?.status).toBe(200)
    expect(await text(url)).toBe('three')
    expect(await deploymentOf(server)).not.toHaveProperty('failed_change')
    await nothingKept(server)
  })

  test('leaves a project with those of the version before, and says so', async () => {
    const server: string = (await call(info, 'POST', '/servers')).body.id
    const wishes = { name: 'kept', visibility: 'public', source: await archiveOf(versionOf('one')) }
    const { id, url } = (await call(info, 'POST', `/servers/${server}/projects`, wishes)).body
    const becomesReady = () =>
      until(async () => (await projectOf(id)).init_phase === 'ready', 'the project to be ready', 20_000)
    await becomesReady()
    expect((await push(`/projects/${id}/push`, stuck('two')))?.status).toBe(200)
    await until(async () => (await contentOf(server, 'projects/kept/stuck')) !== undefined, 'the build')
    await startAgain()
    await becomesReady()
    expect(await text(url)).toBe('one')
    expect(await versionsIn(server, 'projects/kept')).toEqual(['one'])
    expect((await projectOf(id)).failed_change.reason).toMatch(UNDONE)
    expect(await logOf(`/projects/${id}/logs`)).toMatch(UNDONE)
    await nothingKept(server)
    // What runs is pushed: nothing is left to be done, or to be reported.
    expect((await push(`/projects/${id}/push`, versionOf('one')))?.status).toBe(200)
    expect(await projectOf(id)).not.toHaveProperty('failed_change')
    expect((await push(`/projects/${id}/push`, versionOf('three')))?.status).toBe(200)
    await until(async () => (await text(url)) === 'three', 'the next version', 20_000)
    await becomesReady()
    expect(await projectOf(id)).not.toHaveProperty('failed_change')
    await nothingKept(server)
  })
})

test(`${KILLS} times kill -9 at any moment of pushes leaves the files of one version`, async () => {
  const server: string = (await call(info, 'POST', '/servers')).body.id
  const wishes = { name: 'killed', visibility: 'public', source: await archiveOf(versionOf('v0')) }
  const { id, url } = (await call(info, 'POST', `/servers/${server}/projects`, wishes)).body
  const ready = () =>
    until(async () => (await projectOf(id)).init_phase === 'ready', 'the project to be ready', 30_000)
  await ready()
  const path = `/servers/${server}/deployments/push`
  expect((await push(path, versionOf('v0')))?.status).toBe(200)
  let [deployed, pushed] = ['v0', 'v0']
  for (let round = 1; round <= KILLS; round += 1) {
    const next = `v${round}`
    const extra = { removed: [`only-${deployed}.txt`] }
    const pushes = [push(path, versionOf(next), extra), push(`/projects/${id}/push`, versionOf(next))]
    // Every second time amid the change of the files, else at any moment: what has to hold does not depend on it.
    const amid = round % 4 === 1 ? '' : round % 4 === 3 ? 'projects/killed/' : null
    if (amid !== null) await until(async () => (await partOf(server, amid)) === next, 'the files to change')
    else await Bun.sleep((crypto.getRandomValues(new Uint16Array(1))[0] ?? 0) % 500)
    await startAgain()
    await Promise.all(pushes)
    const inDeployment = await versionsIn(server, '')
    const inProject = await versionsIn(server, 'projects/killed')
    expect([[deployed], [next]]).toContainEqual(inDeployment)
    expect([[pushed], [next]]).toContainEqual(inProject)
    ;[deployed, pushed] = [inDeployment[0] ?? '', inProject[0] ?? '']
    await ready()
    const shown = await text(url)
    // Of an app that does not start, its log says why.
    expect(shown === pushed ? shown : `${shown}\n${await logOf(`/projects/${id}/logs`)}`).toBe(pushed)
    await until(async () => (await deploymentOf(server)).live, 'the deployment', 30_000)
    expect(await text((await deploymentOf(server)).url)).toBe(deployed)
    await nothingKept(server)
  }
}, 600_000)
