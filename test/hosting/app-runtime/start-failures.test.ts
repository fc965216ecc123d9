import { describe, expect, test } from 'bun:test'
import { PORT_TAKEN } from '../../../src/hosting/app-runtime/failure-hints.ts'
import { AppFailure } from '../../../src/hosting/app-runtime/plan.ts'
import { runStep } from '../../../src/hosting/app-runtime/step.ts'
import { freePort } from '../../support/ports.ts'
import { planOf, World } from './world.ts'

/** Makes files of the workspace programs. */
const makeExecutable = async (world: World, paths: string): Promise<void> => {
  const exec = { command: `chmod +x ${paths}`, timeoutMs: 5000, onOutput() {} }
  expect(await world.sandbox.exec(exec).exit).toMatchObject({ exitCode: 0 })
}

const failureOf = async (world: World, command: string, folder = 'app'): Promise<AppFailure> => {
  const app = await world.supervise(folder)
  const failure = await app.supervisor.start(planOf(command), {}).catch((error) => error)
  expect(failure).toBeInstanceOf(AppFailure)
  return failure
}

describe('a script with Windows line endings', () => {
  test.each([
    ['that is the command', './run.sh', { 'run.sh': '#!/bin/sh\r\necho up\r\n' }, 'run.sh', '/bin/sh'],
    ['of another language', 'bin/app -x', { 'bin/app': '#!/usr/bin/env python3\r\n' }, 'bin/app', 'python3'],
    [
      'of a script of package.json',
      'bun run start',
      { 'run.sh': '#!/bin/bash\r\n', 'package.json': '{"scripts":{"start":"./run.sh"}}' },
      'run.sh',
      '/bin/bash',
    ],
    [
      'that another script calls',
      'sh up.sh',
      { 'up.sh': '#!/bin/sh\nexec bin/run\n', 'bin/run': '#!/usr/bin/env node\r\n' },
      'bin/run',
      'node',
    ],
  ])('%s is named, with the remedy', async (_, command, files, path, interpreter) => {
    await using world = await World.open()
    await world.write('app', files)
    const scripts = Object.keys(files).filter((file) => !file.endsWith('.json'))
    await makeExecutable(world, scripts.map((file) => `app/${file}`).join(' '))
    const { summary } = await failureOf(world, command)
    expect(summary).toContain(`${path} has Windows line endings`)
    expect(summary).toContain(`"${interpreter}\\r", which does not exist`)
    expect(summary).toEndWith(`sed -i 's/\\r$//' ${path}`)
  })

  test('that a shell is given is named, too', async () => {
    await using world = await World.open()
    await world.write('app', { 'run.sh': 'cd .\r\nexit 3\r\n' })
    expect((await failureOf(world, 'sh run.sh')).summary).toContain('run.sh has Windows line endings')
  })

  test('is named where it fails a build', async () => {
    await using world = await World.open()
    const { sandbox, workspace } = world
    await world.write('app', { 'build.sh': '#!/bin/sh\r\n' })
    await makeExecutable(world, 'app/build.sh')
    const owner = { kind: 'project', id: 'app' } as const
    const place = { owner, sandbox, workspace, cwd: 'app', env: {}, log: await world.log('build') }
    const step = { ...place, source: 'build' as const, command: './build.sh .' }
    await expect(runStep(step)).rejects.toThrow(
      'The build command failed with exit code 127: ./build.sh . build.sh has Windows line endings',
    )
    await world.sandbox.stop()
  })

  test('is not blamed for what it does not cause', async () => {
    await using world = await World.open()
    await world.write('app', { 'app.js': '#!/usr/bin/env bun\r\nprocess.exit(3)\r\n' })
    const { summary } = await failureOf(world, 'bun app.js')
    expect(summary).toBe('The app did not start: it ended with exit code 3.')
  })
})

test('a program that ends without having listened is said to be no server', async () => {
  await using world = await World.open()
  const { summary, end } = await failureOf(world, 'echo done', '')
  expect(summary).toContain('it ended without having listened, with exit code 0: it is no server.')
  expect(end?.exitCode).toBe(0)
})

/** A program with a port of its own that prints what its language prints. */
const OWN_PORT = `
const http = require('http')
const [port, metrics] = process.argv.slice(2).map(Number)
const listen = (port) => http.createServer((_, response) => response.end(process.env.WORD)).listen(port, '127.0.0.1')
if (metrics) listen(metrics).on('listening', () => listen(process.env.PORT))
else listen(port)
`

describe('an app with a port of its own', () => {
  const loop = (args: string): string => `while :; do bun own.js ${args}; sleep 0.2; done`

  test('whose supervisor stays is replaced within seconds', async () => {
    await using world = await World.open()
    await world.write('app', { 'own.js': OWN_PORT })
    const app = await world.supervise('app', { limitMs: 30_000 })
    const command = loop(String(await freePort()))
    await app.supervisor.start(planOf(command), { WORD: 'one' })
    expect(await app.get()).toBe('one')
    await app.supervisor.replace(planOf(command), { WORD: 'two' }, () => Promise.resolve())
    expect(await app.get()).toBe('two')
  })

  test('besides the one in PORT, whose supervisor stays, is replaced within seconds', async () => {
    await using world = await World.open()
    await world.write('app', { 'own.js': OWN_PORT })
    const app = await world.supervise('app', { limitMs: 30_000 })
    const command = loop(`0 ${await freePort()}`)
    await app.supervisor.start(planOf(command), { WORD: 'one' })
    const began = performance.now()
    await app.supervisor.replace(planOf(command), { WORD: 'two' }, () => Promise.resolve())
    expect(performance.now() - began).toBeLessThan(20_000)
    expect(await app.get()).toBe('two')
    expect((await app.lines('berth')).join('\n')).toContain('so that is ended first')
  })

  test.each([
    ['ends', (port: number) => `bun own.js ${port}`],
    ['stays', (port: number) => loop(String(port))],
  ])('that another app has is reported with that app, if its supervisor %s', async (_, command) => {
    await using world = await World.open()
    const port = await freePort()
    await world.write('first', { 'own.js': OWN_PORT })
    await world.write('second', { 'own.js': OWN_PORT })
    const first = await world.supervise('first')
    await first.supervisor.start(planOf(`bun own.js ${port}`), { WORD: 'one' })
    const second = await world.supervise('second', { limitMs: 3000 })
    const failure = await second.supervisor.start(planOf(command(port)), {}).catch((error) => error)
    expect(failure.summary).toContain(`It wants port ${port}, which is held by the app of the project first.`)
    expect(failure.summary).not.toContain('did not listen')
    expect(await first.get()).toBe('one')
  })

  test('that a command of its server has is reported as such', async () => {
    await using world = await World.open()
    const port = await freePort()
    await world.write('app', { 'own.js': OWN_PORT })
    const held = Promise.withResolvers<void>()
    const command = `bun -e 'Bun.listen({ port: ${port}, hostname: "127.0.0.1", socket: { data() {} } }); console.log("up")'`
    const holder = world.sandbox.exec({ command, timeoutMs: null, onOutput: () => held.resolve() })
    holder.exit.catch(() => {})
    await held.promise
    const { summary } = await failureOf(world, `bun own.js ${port}`)
    expect(summary).toMatch(
      new RegExp(`It wants port ${port}, which is held by process \\d+ of its server \\(bun`),
    )
  })
})

test.each([
  'Error: listen EADDRINUSE: address already in use 127.0.0.1:8080',
  'OSError: [Errno 98] Address already in use',
  'listen tcp 127.0.0.1:8080: bind: address already in use',
  'Error: Os { code: 98, kind: AddrInUse, message: "Address already in use" }',
  "[ERROR] Connection in use: ('127.0.0.1', 8000)",
  'Error: That port is already in use.',
  'Port 5000 is in use by another program.',
  'Web server failed to start. Port 8080 was already in use.',
  'Something is already running on port 3000.',
])('is read in the words of other programs: %s', (line) => expect(line).toMatch(PORT_TAKEN))
