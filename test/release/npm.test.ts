import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../support/ports.ts'
import { owner, readmeCommands, version } from './facts.ts'
import { startNpmRegistry } from './npm-registry.ts'
import { lacks, Machine } from './support.ts'

const isSkipped = lacks(Bun.which('npm') === null ? 'the packages of npm: there is no npm' : null)
const machine = new Machine()
const project = join(machine.path, 'project')
const berth = join(project, 'node_modules/.bin/berth')
let registry: Bun.Subprocess | null = null

beforeAll(async () => {
  if (isSkipped) return
  registry = await startNpmRegistry(machine, freePort(), (command) =>
    Bun.spawn([...command], { env: machine.env, stdio: ['ignore', 'ignore', 'ignore'] }),
  )
  mkdirSync(project)
  const scripts = { test: 'berth run -- node check.js' }
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'app', version: '1.0.0', scripts }))
  writeFileSync(
    join(project, 'check.js'),
    `const { BERTH_BASE_URL: url, BERTH_API_KEY: key } = process.env
     fetch(url + '/servers', { method: 'POST', headers: { authorization: 'Bearer ' + key } })
       .then((response) => console.log('status', response.status))`,
  )
  // The registry may have to be installed, and takes a while for a package of 80 MB.
}, 400_000)

afterAll(async () => {
  registry?.kill('SIGKILL')
  await registry?.exited
  machine[Symbol.dispose]()
})

test.skipIf(isSkipped)(
  'the package installs from a registry, and runs tests by a script of package.json',
  async () => {
    const first = await machine.output(['sh', '-ec', readmeCommands('npm')], { cwd: project })
    expect(first).toEndWith('it works\n')
    const printed = await machine.output(['npm', 'test'], { cwd: project })
    expect(printed).toContain('status 201')
    expect(readdirSync(join(project, `node_modules/@${owner}`)).sort()).toEqual(['berth', 'berth-linux-x64'])
    const facts = JSON.parse(
      await machine.output(['npx', '--no-install', 'berth', 'version', '--json'], { cwd: project }),
    )
    expect(facts).toMatchObject({ version, system: 'linux-x64', libc: 'glibc', installed_by: 'npm' })
    const path = await machine.output(['node', '-p', `require('@${owner}/berth').path`], { cwd: project })
    expect(JSON.parse(await machine.output([path.trim(), 'version', '--json']))).toEqual(facts)
  },
)

test.skipIf(isSkipped)(
  'the launcher passes streams, arguments and the exit code, 128+n after a signal',
  async () => {
    const inside = (script: string, stdin = '') =>
      machine.run([berth, 'run', '--', 'sh', '-c', script], { cwd: project, stdin })
    expect(await inside('cat; echo "$0" >&2; exit 7', 'in')).toMatchObject({ exitCode: 7, stdout: 'in' })
    expect((await inside('kill -9 $$')).exitCode).toBe(137)
    const { stdout } = await machine.run([berth, 'exec', '--help', '--', "a b'c"], { cwd: project })
    expect(stdout).toContain('berth exec')
  },
)

test.skipIf(isSkipped)('an instance ends with its launcher, whatever signal ends that', async () => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const data = join(machine.path, `data-${signal}`)
    const child = Bun.spawn([berth, 'serve', '--port', '0', '--json', '--data', data], {
      cwd: project,
      env: machine.env,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const reader = child.stdout.getReader()
    const { base_url, pid } = JSON.parse(new TextDecoder().decode((await reader.read()).value))
    expect(pid).toBe(child.pid)
    child.kill(signal)
    await child.exited
    expect(child.signalCode ?? child.exitCode).toBe(signal === 'SIGKILL' ? 'SIGKILL' : 0)
    await expect(fetch(`${base_url}/_berth/health`)).rejects.toThrow()
  }
})

test.skipIf(isSkipped)('an upgrade is left to npm', async () => {
  const { exitCode, stderr } = await machine.run([berth, 'upgrade', '--from', 'none'], { cwd: project })
  expect(exitCode).toBe(1)
  expect(stderr).toContain(`was installed by npm, which keeps track of its files. Nothing was changed.`)
  expect(stderr).toContain(`npm install @${owner}/berth@latest`)
})

test.skipIf(isSkipped)('a missing platform package is one sentence with the command', async () => {
  rmSync(join(project, `node_modules/@${owner}/berth-linux-x64`), { recursive: true })
  const { exitCode, stderr } = await machine.run([berth, 'version'], { cwd: project })
  expect(exitCode).toBe(1)
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  const command = `npm install --no-save @${owner}/berth-linux-x64@${version}`
  expect(stderr).toContain(command)
  await machine.output(command.split(' '), { cwd: project })
  expect(await machine.output([berth, 'version'], { cwd: project })).toStartWith(`berth ${version} `)
})

test.skipIf(isSkipped)('an uninstallation leaves nothing', async () => {
  // Without what the test before has added beside package.json.
  rmSync(join(project, 'node_modules'), { recursive: true })
  await machine.output(['npm', 'install'], { cwd: project })
  expect(existsSync(berth)).toBe(true)
  await machine.output(['npm', 'uninstall', `@${owner}/berth`], { cwd: project })
  const scope = join(project, `node_modules/@${owner}`)
  expect(existsSync(scope) ? readdirSync(scope) : []).toEqual([])
  expect(existsSync(berth)).toBe(false)
  expect(readFileSync(join(project, 'package.json'), 'utf8')).not.toContain(`@${owner}`)
})
