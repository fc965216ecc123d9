import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from '../../src/cli/doctor.ts'
import {
  examineDirectory,
  examineGit,
  examineInstance,
  examineIsolation,
  examinePort,
} from '../../src/cli/doctor.ts'
import { type ComputeDriver, kindOf, type Probe } from '../../src/compute/driver.ts'
import { link, MAKERS, program, write } from '../support/toolchain-files.ts'
import { run, serve, temporaryFolder } from './command.ts'

const ENFORCED = {
  ...{ cpu: 'cgroup', memory: 'watchdog', processes: 'none', disk: 'quota', network: 'none' },
  user: 'shared with berth',
}

const driver = (name: ComputeDriver['name'], probe: boolean): ComputeDriver =>
  ({
    name,
    probe: async (): Promise<Probe> =>
      probe
        ? {
            available: true,
            network: 'shared',
            enforced: async () => ({ isolation: kindOf(name).isolation, ...ENFORCED }),
          }
        : { available: false, reason: 'It is refused.', remedy: 'Allow it.' },
  }) as ComputeDriver

test('doctor reports what is there, makes nothing, and succeeds when berth can run', async () => {
  using folder = temporaryFolder()
  const { exitCode, stdout, stderr } = await run(['doctor'], { cwd: folder.path })
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  for (const name of [
    'bubblewrap',
    'landlock',
    'none',
    'memory limit',
    'terminal',
    'git',
    'port 4747',
    'data directory',
  ])
    expect(stdout).toMatch(new RegExp(`^[✓–✗] ${name} `, 'm'))
  expect(existsSync(join(folder.path, '.berth'))).toBe(false)
})

test('doctor --json agrees with what a berth started here enforces', async () => {
  await using berth = await serve()
  const { stdout } = await berth.run(['doctor', '--json'])
  const report = JSON.parse(stdout)
  const response = await fetch(`${berth.info.base_url}/_berth/health`)
  const health = (await response.json()) as { enforced: object }
  expect(report).toMatchObject({ ok: true, isolation: berth.info.isolation, enforced: health.enforced })
  expect(report.findings.at(-1)).toEqual({
    name: 'instance',
    status: 'ok',
    detail: `berth ${berth.info.version} runs at ${berth.info.base_url}`,
  })
})

test('doctor says for each language what servers see, what they do not, and why', async () => {
  using folder = temporaryFolder()
  const at = (path: string): string => join(folder.path, path)
  for (const version of ['3.12.1', '3.13.2']) MAKERS.python(at(`home/.pyenv/versions/${version}`), version)
  write(at('home/.pyenv/version'), '3.12.1\n')
  program(at('home/.pyenv/shims/python3'), 'a stand-in')
  program(at('home/.rbenv/shims/ruby'), 'a stand-in')
  write(at('home/.rbenv/version'), '3.9.9\n')
  MAKERS.go(at('go'), '1.2.3')
  write(at('go/bin/go'), '#!/bin/sh\necho "go: error: cannot find something" >&2\nexit 2\n', 0o755)
  program(at('private/gradle'), 'Gradle 8.5')
  link(at('tools/gradle'), at('private/gradle'))
  const path = ['home/.pyenv/shims', 'home/.rbenv/shims', 'go/bin', 'tools'].map(at)
  const { stdout } = await run(['doctor', '--json', '--for', 'run'], {
    cwd: folder.path,
    env: { HOME: at('home'), PATH: `${path.join(':')}:/usr/bin:/bin` },
  })
  const { findings, isolation } = JSON.parse(stdout) as { isolation: string; findings: Finding[] }
  const of = (wanted: string) => findings.find(({ name }) => name === wanted)
  const python = at('home/.pyenv/versions/3.12.1/bin/python3')
  expect(of('Python')).toMatchObject({
    status: 'ok',
    detail: expect.stringContaining(`3.12.1 (${python}, by pyenv); also 3.13.2`),
  })
  expect(of('Go')).toMatchObject({
    status: 'absent',
    detail: `${at('go/bin/go')} does not run on servers: go: error: cannot find something`,
  })
  const ruby = `${at('home/.rbenv/shims')}: rbenv: 3.9.9 is not installed`
  expect(of('PATH')?.detail).toContain(ruby)
  if (isolation === 'none') return
  expect(of('Gradle')?.detail).toContain(
    `not ${at('tools/gradle')}: it leads to ${at('private/gradle')}, which is in no toolchain that berth knows`,
  )
})

test('doctor fails and says what is missing where berth cannot run as configured', async () => {
  const { exitCode, stdout, stderr } = await run(['doctor', '--data', '/proc/none/.berth'])
  expect(exitCode).toBe(1)
  expect(stdout).toMatch(/^✗ data directory .*cannot be written/m)
  expect(stderr).toBe('berth: cannot run here: data directory\n')
})

test('the strongest tier that works is used; one that was asked for and is missing is a failure', async () => {
  const drivers = [driver('bubblewrap', false), driver('landlock', true), driver('none', true)]
  const auto = await examineIsolation(drivers, 'auto')
  expect(auto).toMatchObject({ used: 'landlock', enforced: { memory: 'watchdog' } })
  expect(auto.findings[0]).toEqual({
    name: 'bubblewrap',
    status: 'absent',
    detail: 'not available: It is refused.',
    remedy: 'Allow it.',
  })
  expect(auto.findings.find(({ name }) => name === 'process limit')?.status).toBe('absent')
  const asked = await examineIsolation(drivers, 'bubblewrap')
  expect(asked).toMatchObject({ used: null, enforced: null })
  expect(asked.findings[0]?.status).toBe('failed')
  // None is for those who ask for it.
  const nothing = await examineIsolation([driver('landlock', false), driver('none', true)], 'auto')
  expect(nothing).toMatchObject({ used: null })
  expect(nothing.findings.at(-1)).toMatchObject({
    name: 'isolation',
    status: 'failed',
    remedy: expect.stringContaining('--compute local --isolation none'),
  })
  const none = await examineIsolation([driver('landlock', false), driver('none', true)], 'none')
  expect(none).toMatchObject({ used: 'none' })
})

test('a taken port is found by listening, and the running berth may have it', async () => {
  await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const { port = 0 } = other
  expect(examinePort('127.0.0.1', port, null)).toMatchObject({
    status: 'absent',
    name: `port ${port}`,
    detail: expect.stringMatching(new RegExp(`^in use by pid ${process.pid} \\(.+\\)$`)),
  })
  expect(examinePort('127.0.0.1', port, `http://127.0.0.1:${port}`)).toMatchObject({ status: 'ok' })
  await other.stop(true)
  expect(examinePort('127.0.0.1', port, null)).toMatchObject({ status: 'ok', detail: 'free' })
})

test('doctor --for run looks at what that command needs, and at no port or data directory', async () => {
  using folder = temporaryFolder()
  const { exitCode, stdout } = await run(['doctor', '--for', 'run', '--json', '--data', '/proc/none'], {
    cwd: folder.path,
    env: { TMPDIR: folder.path },
  })
  const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: { name: string }[] }
  const names = findings.map(({ name }) => name)
  expect({ exitCode, ok }).toEqual({ exitCode: 0, ok: true })
  expect(names).toContain('temporary directory')
  for (const name of ['port 4747', 'data directory', 'instance']) expect(names).not.toContain(name)
})

test('an instance that a busy machine keeps waiting is there all the same', async () => {
  await using busy = Bun.serve({
    port: 0,
    async fetch() {
      await Bun.sleep(1_500)
      return Response.json({ version: '1.2.3' })
    },
  })
  expect(await examineInstance(busy.url.origin, 'auto')).toMatchObject({ status: 'ok' })
})

test('a folder that does not exist yet is tried where it would be made', () => {
  using folder = temporaryFolder()
  expect(examineDirectory(join(folder.path, 'a/b/.berth'))).toMatchObject({ status: 'ok' })
  expect(existsSync(join(folder.path, 'a'))).toBe(false)
})

test('reports a missing git with the remedy', async () => {
  expect(await examineGit('/nowhere')).toMatchObject({
    status: 'absent',
    remedy: expect.stringContaining('Install git'),
  })
})
