import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parse } from 'yaml'
import { lacks, Machine, owner, release, root, version } from './support.ts'

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: ({ url }) => {
    const file = Bun.file(join(release, basename(new URL(url).pathname)))
    return new Response(file)
  },
})
afterAll(() => server.stop(true))
const mirror = `http://127.0.0.1:${server.port}`

/** The variables that a runner of GitHub sets for a step of an action in a directory. */
function runner(machine: Machine, action: string): Record<string, string> {
  const file = (name: string): string => join(machine.path, name)
  for (const name of ['path', 'env']) if (!existsSync(file(name))) writeFileSync(file(name), '')
  mkdirSync(file('temp'), { recursive: true })
  return {
    GITHUB_ACTION_PATH: join(release, 'repositories/setup-berth', action),
    GITHUB_PATH: file('path'),
    GITHUB_ENV: file('env'),
    RUNNER_TEMP: file('temp'),
  }
}

interface ActionFile {
  readonly inputs: Record<string, { default: string }>
  readonly runs: { readonly steps: readonly { run?: string; env?: Record<string, string> }[] }
}

/** Runs the shell steps of a composite action as a runner does: `sh -e` with the inputs in place of their expressions. */
async function runAction(
  machine: Machine,
  action: string,
  inputs: Record<string, string>,
  path = '',
): Promise<string> {
  const place = join(release, 'repositories/setup-berth', action)
  const { runs, inputs: declared } = parse(readFileSync(join(place, 'action.yml'), 'utf8')) as ActionFile
  const filledIn = (expression: string): string =>
    expression.replaceAll(
      /\$\{\{ inputs\.([\w-]+) \}\}/g,
      (_, name: string) => inputs[name] ?? declared[name]?.default ?? '',
    )
  let printed = ''
  for (const { run, env = {} } of runs.steps) {
    if (run === undefined) continue
    const given = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, filledIn(value)]))
    printed += await machine.output(['sh', '-e', '-c', run], {
      env: { ...runner(machine, action), ...given, PATH: `${path}${machine.env.PATH}` },
    })
  }
  return printed
}

describe('the GitHub Action', () => {
  test('puts berth on PATH, and a second job takes it from the cache', async () => {
    using machine = new Machine()
    await runAction(machine, '.', { 'download-url': mirror })
    const path = readFileSync(join(machine.path, 'path'), 'utf8').trim()
    expect(path).toBe(join(machine.path, '.cache/berth', version))
    await machine.output(['berth', 'run', '--', 'true'], { env: { PATH: `${path}:${machine.env.PATH}` } })
    await runAction(machine, '.', { 'download-url': 'http://127.0.0.1:1' })
  })

  test('starts an instance for the steps that follow, and the report takes its log and ends it', async () => {
    using machine = new Machine()
    const printed = await runAction(machine, '.', { start: 'true', 'download-url': mirror })
    const lines = readFileSync(join(machine.path, 'env'), 'utf8').trim().split('\n')
    const env = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2)))
    expect(Object.keys(env).sort()).toEqual([
      'BERTH_ADMIN_TOKEN',
      'BERTH_API_KEY',
      'BERTH_BASE_URL',
      'BERTH_DATA',
      'BERTH_MCP_URL',
    ])
    for (const name of ['BERTH_API_KEY', 'BERTH_ADMIN_TOKEN'])
      expect(printed).toContain(`::add-mask::${env[name]}`)
    // GitHub hides them from there on.
    const shown = printed.replaceAll(/^::add-mask::.*$/gm, '')
    for (const name of ['BERTH_API_KEY', 'BERTH_ADMIN_TOKEN']) expect(shown).not.toContain(env[name] ?? '?')
    const authorization = `Bearer ${env.BERTH_API_KEY}`
    expect((await fetch(`${env.BERTH_BASE_URL}/servers`, { headers: { authorization } })).status).toBe(200)

    const path = `${readFileSync(join(machine.path, 'path'), 'utf8').trim()}:`
    await runAction(machine, 'report', {}, path)
    await expect(fetch(`${env.BERTH_BASE_URL}/servers`)).rejects.toThrow()
    const log = readFileSync(join(machine.path, 'temp/berth-logs/requests.txt'), 'utf8')
    expect(log).toContain('/servers')
    for (const secret of [env.BERTH_API_KEY, env.BERTH_ADMIN_TOKEN]) expect(log).not.toContain(secret ?? '?')
  })
})

test('the template of GitLab puts berth on PATH, and refuses another install.sh', async () => {
  using machine = new Machine()
  const template = parse(readFileSync(join(release, 'berth.gitlab-ci.yml'), 'utf8'))
  const [before] = template['.berth'].before_script
  const env = { CI_PROJECT_DIR: machine.path, BERTH_DOWNLOAD_URL: mirror }
  const script = `set -eo pipefail\n${before}\nberth run -- true`
  await machine.output(['bash', '-c', script], { env })
  await machine.output(['bash', '-c', script], { env: { ...env, BERTH_DOWNLOAD_URL: 'http://127.0.0.1:1' } })
  using other = new Machine()
  const changed = before.replace(/"[0-9a-f]{64}/, `"${'0'.repeat(64)}`)
  const refused = await other.run(['bash', '-c', changed], { env: { ...env, CI_PROJECT_DIR: other.path } })
  expect(refused.exitCode).toBe(1)
  expect(existsSync(join(other.path, '.cache'))).toBe(false)
})

const hasRuby = Bun.which('ruby') !== null
test.skipIf(lacks(hasRuby ? null : 'the syntax of the Homebrew formula: there is no ruby'))(
  'the Homebrew formula is Ruby, with the hash of each archive',
  async () => {
    using machine = new Machine()
    const formula = join(release, 'repositories/homebrew-tap/Formula/berth.rb')
    expect(await machine.output(['ruby', '-c', formula])).toContain('Syntax OK')
    const text = readFileSync(formula, 'utf8')
    const sums = readFileSync(join(release, 'SHA256SUMS'), 'utf8')
    const pairs = [...text.matchAll(/url ".*\/(.*)"\s+sha256 "([0-9a-f]{64})"/g)]
    expect(pairs.length).toBeGreaterThan(1)
    for (const [, archive, hash] of pairs) expect(sums).toContain(`${hash}  ${archive}\n`)
  },
)

const hasNix = Bun.which('nix-instantiate') !== null
test.skipIf(lacks(hasNix ? null : 'the syntax of the Nix flake: there is no nix-instantiate'))(
  'the Nix flake can be parsed',
  async () => {
    using machine = new Machine()
    const state = join(machine.path, 'nix')
    const env = { NIX_STORE_DIR: join(state, 'store'), NIX_STATE_DIR: state, NIX_LOG_DIR: state }
    await machine.output(['nix-instantiate', '--parse', join(root, 'scripts/packaging/nix/flake.nix')], {
      env,
    })
  },
)

const hasSystemd = Bun.which('systemd-analyze') !== null
test.skipIf(lacks(hasSystemd ? null : 'the systemd unit: there is no systemd-analyze'))(
  'systemd accepts the unit, which takes nothing that servers need',
  async () => {
    using machine = new Machine()
    const text = readFileSync(join(root, 'scripts/packaging/systemd/berth.service'), 'utf8')
    const unit = join(machine.path, 'berth.service')
    writeFileSync(unit, text.replaceAll('{{owner}}', owner).replaceAll('{{executable}}', '/bin/true'))
    await machine.output(['systemd-analyze', 'verify', '--user', unit], {
      env: { XDG_RUNTIME_DIR: machine.path },
    })
    expect(text).not.toMatch(
      /^(?:RestrictNamespaces|ProtectProc|PrivateUsers|ProtectControlGroups|SystemCallFilter|PrivateDevices)=/m,
    )
    expect(text).toContain('\nDelegate=yes\n')
  },
)
