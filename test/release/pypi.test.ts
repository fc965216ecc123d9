import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { lacks, Machine, owner, readmeCommands, release, version } from './support.ts'

const name = `${owner}-berth-cli`
const machine = new Machine()
const environment = join(machine.path, 'venv')
const bin = (program: string): string => join(environment, 'bin', program)
let index: Bun.Server<undefined> | null = null

const hasPython = Bun.spawnSync(['python3', '-c', 'import venv, ensurepip']).success
const isSkipped = lacks(hasPython ? null : 'the wheel: there is no Python 3 with venv')

beforeAll(async () => {
  if (isSkipped) return
  // An index as pip reads it (packaging.python.org, simple repository API).
  index = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      const { pathname } = new URL(url)
      const wheels = readdirSync(join(release, 'pypi'))
      const wheel = wheels.find((file) => pathname === `/files/${file}`)
      if (wheel !== undefined) return new Response(Bun.file(join(release, 'pypi', wheel)))
      if (pathname !== `/simple/${name}/`) return new Response('No such package.', { status: 404 })
      const links = wheels.map((file) => `<a href="/files/${file}">${file}</a>`)
      return new Response(`<!DOCTYPE html>${links.join('\n')}`, { headers: { 'content-type': 'text/html' } })
    },
  })
  await machine.output(['python3', '-m', 'venv', environment])
}, 120_000)

afterAll(async () => {
  await index?.stop(true)
  machine[Symbol.dispose]()
})

test.skipIf(isSkipped)('pip installs the executable under both names, and it runs tests', async () => {
  const began = performance.now()
  const env = {
    PATH: `${join(environment, 'bin')}:${machine.env.PATH}`,
    PIP_INDEX_URL: `${index?.url}simple`,
  }
  expect(await machine.output(['sh', '-ec', readmeCommands('pip')], { env })).toEndWith('it works\n')
  console.log(
    `pip: from an empty environment to a run in ${((performance.now() - began) / 1_000).toFixed(1)} s`,
  )
  for (const program of ['berth', name]) {
    const facts = JSON.parse(await machine.output([bin(program), 'version', '--json']))
    expect(facts).toMatchObject({ version, system: 'linux-x64', installed_by: 'pip' })
  }
  const { exitCode, stderr } = await machine.run([bin('berth'), 'upgrade', '--from', 'none'])
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: expect.stringContaining(`pip install --upgrade ${name}`),
  })
})

test.skipIf(isSkipped)('pip removes all that it has installed', async () => {
  await machine.output([bin('pip'), 'uninstall', '--yes', name])
  expect([bin('berth'), bin(name)].filter(existsSync)).toEqual([])
  const left = [...new Bun.Glob('**/*berth*').scanSync({ cwd: environment, onlyFiles: false })]
  expect(left).toEqual([])
})
