import { afterAll, describe, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parse } from 'yaml'
import { shellQuote } from '../../src/runtime/shell-quote.ts'
import { owner, release, root, version } from './facts.ts'
import { action, actionScript, gitlabArtifacts, gitlabScript, stepScript } from './job.ts'
import { lacks, Machine } from './support.ts'

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

/** The variables of a job of GitHub. */
function runner(machine: Machine): Record<string, string> {
  const file = (name: string): string => join(machine.path, name)
  for (const name of ['path', 'env']) if (!existsSync(file(name))) writeFileSync(file(name), '')
  mkdirSync(file('temp'), { recursive: true })
  return { CI: 'true', GITHUB_PATH: file('path'), GITHUB_ENV: file('env'), RUNNER_TEMP: file('temp') }
}

/** Runs steps of a job of GitHub, and returns what they print. */
const runJob = (machine: Machine, ...steps: string[]): Promise<string> =>
  machine.output(['bash', '-ec', steps.join('')], { env: runner(machine) })

/** A suite that fails once it has a server, and its exit code. */
const FAILING = 'berth servers create lost -q && exit 3'

/** Expects that a program finds the failure in the uploaded report, and that its page is whole. */
async function expectReport(machine: Machine, uploaded: string, berth: string): Promise<void> {
  const kept = join(machine.path, 'downloaded')
  cpSync(uploaded, kept, { recursive: true })
  expect(await machine.output([berth, 'report', kept])).toContain(join(kept, 'index.html'))
  expect(readFileSync(join(kept, 'index.html'), 'utf8')).toContain('</html>')
  expect(readFileSync(join(kept, 'journal.jsonl'), 'utf8')).toContain('"path":"/servers"')
}

describe('the GitHub Action', () => {
  test('puts berth on PATH, and a second job takes it from the cache', async () => {
    using machine = new Machine()
    await runJob(machine, actionScript('.', { 'download-url': mirror }))
    const path = readFileSync(join(machine.path, 'path'), 'utf8').trim()
    expect(path).toBe(join(machine.path, '.cache/berth', version))
    await machine.output(['berth', 'run', '--', 'true'], { env: { PATH: `${path}:${machine.env.PATH}` } })
    await runJob(machine, actionScript('.', { 'download-url': 'http://127.0.0.1:1' }))
  })

  test('starts an instance for the steps that follow, and the report takes its log and ends it', async () => {
    using machine = new Machine()
    const printed = await runJob(machine, actionScript('.', { start: 'true', 'download-url': mirror }))
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

    await runJob(machine, actionScript('report', {}))
    await expect(fetch(`${env.BERTH_BASE_URL}/servers`)).rejects.toThrow()
    const log = readFileSync(join(machine.path, 'temp/berth-logs/requests.txt'), 'utf8')
    expect(log).toContain('/servers')
    for (const secret of [env.BERTH_API_KEY, env.BERTH_ADMIN_TOKEN]) expect(log).not.toContain(secret ?? '?')
  })

  test('uploads the report of a run that failed, which opens elsewhere', async () => {
    using machine = new Machine()
    const run = shellQuote(['berth', 'run', '--', 'sh', '-c', FAILING])
    const exitCode = 'echo "$?" >exit-code'
    await runJob(machine, actionScript('.', { 'download-url': mirror }), stepScript(`${run} || ${exitCode}`))
    expect(readFileSync(join(machine.path, 'exit-code'), 'utf8')).toBe('3\n')
    await runJob(machine, actionScript('report', {}))
    const { runs } = parse(readFileSync(join(action, 'report/action.yml'), 'utf8'))
    const [uploaded] = runs.steps.at(-1).with.path.split('\n')
    const berth = join(machine.path, '.cache/berth', version, 'berth')
    await expectReport(machine, join(machine.path, uploaded), berth)
  })
})

test('the template of GitLab puts berth on PATH, keeps the report of a failure, and refuses another install.sh', async () => {
  using machine = new Machine()
  const before = gitlabScript()
  const env = { CI_PROJECT_DIR: machine.path, BERTH_DOWNLOAD_URL: mirror }
  const script = `set -eo pipefail\n${before}\nberth run -- true`
  await machine.output(['bash', '-c', script], { env })
  await machine.output(['bash', '-c', script], { env: { ...env, BERTH_DOWNLOAD_URL: 'http://127.0.0.1:1' } })
  const failed = await machine.run(['bash', '-c', `${script}\nberth run -- sh -c "${FAILING}"`], {
    env: { ...env, CI: 'true' },
  })
  expect(failed.exitCode).toBe(3)
  const [uploaded = ''] = gitlabArtifacts()
  await expectReport(
    machine,
    join(machine.path, uploaded),
    join(machine.path, '.cache/berth', version, 'berth'),
  )
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
