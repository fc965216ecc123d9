import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { owner, readmeCommands, version } from './facts.ts'
import { packageIndex } from './file-servers.ts'
import { lacks, Machine } from './support.ts'

const name = `${owner}-berth-cli`
const machine = new Machine()
/** The virtual environment that the README has its reader make. */
const environment = join(machine.path, '.venv')
const bin = (program: string): string => join(environment, 'bin', program)
let index: Bun.Server<undefined> | null = null

const hasPython = Bun.spawnSync(['python3', '-c', 'import venv, ensurepip']).success
const isSkipped = lacks(hasPython ? null : 'the wheel: there is no Python 3 with venv')

beforeAll(() => {
  if (isSkipped) return
  index = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: packageIndex })
})

afterAll(async () => {
  await index?.stop(true)
  machine[Symbol.dispose]()
})

test.skipIf(isSkipped)('pip installs the executable under both names, and it runs tests', async () => {
  const env = { PIP_INDEX_URL: `${index?.url}simple` }
  expect(await machine.output(['sh', '-ec', readmeCommands('pip')], { env })).toEndWith('it works\n')
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
