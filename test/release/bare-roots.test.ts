import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { shellQuote } from '../../src/runtime/shell-quote.ts'
import { missingIn, TOUR } from '../examples/tour.ts'
import { BareRoot, differences, whyNoRoot } from './bare-root.ts'
import { owner, readmeCommands, release, version } from './facts.ts'
import { action, actionScript, gitlabScript, stepScript } from './job.ts'
import { OwnNetwork } from './network.ts'
import { startNpmRegistry } from './npm-registry.ts'
import { lacks, Machine, timed } from './support.ts'

const reason = whyNoRoot()
const isSkipped = lacks(reason === null ? null : `the README's commands on bare roots: ${reason}`)
const machine = new Machine()
let network: OwnNetwork

const PORTS = { npm: 4873, index: 8080 }
const CURL = ['ca-certificates', 'curl']
const NODE = ['nodejs', 'npm']
const PYTHON = ['python3', 'python3-pip', 'python3-venv']

beforeAll(async () => {
  if (isSkipped) return
  network = await OwnNetwork.make(machine)
  await network.startFileServers(PORTS.index)
  const start = (command: readonly string[]) => network.start(command)
  await startNpmRegistry(machine, PORTS.npm, start, network.within)
  // Debian's packages may have to be downloaded and installed.
}, 600_000)

afterAll(async () => {
  if (!isSkipped) await network[Symbol.asyncDispose]()
  machine[Symbol.dispose]()
})

/** Takes the tour of the README with an installed berth, as a person who has curl too. @param before puts it on PATH */
async function takeTour(root: BareRoot, before: string): Promise<void> {
  const printed = await root.output(
    `
${before}
mkdir tour
cd tour
berth serve --allow-local-webhooks >log 2>&1 &
berth wait --data .berth --timeout 60s >/dev/null
${shellQuote(['sh', '-euxc', TOUR])}
berth stop >/dev/null
wait
`,
    { lent: CURL },
  )
  // Without namespaces of its own, as here, a program is its user.
  expect(missingIn(printed, 'person')).toEqual([])
}

/** What docs/instances.md has a person remove beside the executable, and what the tour has made. */
const REMOVE_DATA = 'rm -r ~/.local/state/berth ~/tour; rm -rf ~/.config/berth'

/** Directories of a home that other programs use too. */
const COMMON = /^\/home\/person\/\.(?:config|local|local\/bin|local\/state)$/

/**
 * Expects that nothing is left of berth after a removal.
 *
 * @param kept what belongs to the program that installed it, such as its cache
 */
async function expectRemoved(
  root: BareRoot,
  before: ReadonlyMap<string, string>,
  kept?: RegExp,
): Promise<void> {
  const left = differences(before, await root.list())
  expect(left.filter((path) => !kept?.test(path) && !COMMON.test(path))).toEqual([])
  // A cache has names that are hashes.
  expect(left.filter((path) => /berth/i.test(path) && !/\/_logs\//.test(path))).toEqual([])
}

test.skipIf(isSkipped)(
  'a person with Node.js alone gets berth, takes the tour, and removes all of it',
  async () => {
    const root = await BareRoot.make('npm', { machine, network, packages: NODE })
    const env = { npm_config_registry: `http://127.0.0.1:${PORTS.npm}/`, npm_config_update_notifier: 'false' }
    const before = await root.list()
    await timed('npm', root.output(readmeCommands('npm'), { env }))
    await root.output('node_modules/.bin/berth run -- true')
    await takeTour(root, 'PATH=$PWD/node_modules/.bin:$PATH')
    await root.output(`npm uninstall @${owner}/berth; ${REMOVE_DATA}`, { env })
    await expectRemoved(root, before, /^\/home\/person\/(?:\.npm|node_modules|package(?:-lock)?\.json)/)
  },
  600_000,
)

test.skipIf(isSkipped)(
  'a person with Python alone gets berth, takes the tour, and removes all of it',
  async () => {
    const root = await BareRoot.make('pip', { machine, network, packages: PYTHON })
    const env = {
      PIP_INDEX_URL: `http://127.0.0.1:${PORTS.index}/simple`,
      PIP_DISABLE_PIP_VERSION_CHECK: '1',
    }
    const before = await root.list()
    await timed('pip', root.output(readmeCommands('pip'), { env }))
    await root.output('.venv/bin/berth run -- true')
    await takeTour(root, '. .venv/bin/activate')
    await root.output(`.venv/bin/pip uninstall --yes ${owner}-berth-cli; ${REMOVE_DATA}`, { env })
    await expectRemoved(root, before, /^\/home\/person\/(?:\.venv|\.cache)/)
  },
  600_000,
)

test.skipIf(isSkipped)(
  'a person with curl alone gets berth, takes the tour, and removes all of it',
  async () => {
    const root = await BareRoot.make('curl', { machine, network, packages: CURL })
    const before = await root.list()
    await timed('curl', root.output(readmeCommands('curl')))
    await root.output('~/.local/bin/berth run -- true')
    await takeTour(root, 'PATH=~/.local/bin:$PATH')
    await root.output(`rm ~/.local/bin/berth; ${REMOVE_DATA}`)
    await expectRemoved(root, before)
  },
  600_000,
)

test.skipIf(isSkipped)(
  'a person with apt gets berth by the package, takes the tour, and removes all of it',
  async () => {
    const root = await BareRoot.make('debian', { machine, network, packages: CURL })
    const before = await root.list()
    const file = `berth_${version}_amd64.deb`
    const url = `https://github.com/${owner}/berth/releases/download/v${version}/${file}`
    await root.output(`curl -fsSLo /tmp/${file} ${url} && dpkg --install /tmp/${file} && rm /tmp/${file}`, {
      asRoot: true,
    })
    expect(await root.output('cat /usr/lib/systemd/user/berth.service')).toContain(
      'ExecStart=/usr/bin/berth serve',
    )
    await root.output('berth run -- true')
    await takeTour(root, '')
    await root.output(REMOVE_DATA)
    await root.output('dpkg --purge berth', { asRoot: true })
    await expectRemoved(root, before, /^\/var\/(?:lib\/dpkg|log)\//)
  },
  600_000,
)

/** A project whose test asks for a server, as a job has checked it out. */
const PROJECT = `
mkdir -p project
cd project
cat >package.json <<'END'
{ "name": "app", "version": "1.0.0", "scripts": { "test": "sh test.sh" } }
END
cat >test.sh <<'END'
berth exec "$(berth servers create -q)" -- echo it works
END
`

test.skipIf(isSkipped)(
  'a job of GitHub gets berth by the action, and its tests pass',
  async () => {
    const root = await BareRoot.make('github', { machine, network, packages: NODE })
    // A runner has it.
    const options = { lent: CURL, shell: 'bash' }
    root.give(action, '/opt/action')
    const text = readFileSync(join(action, 'README.md'), 'utf8')
    const [, command = ''] = /- run: (.*)/.exec(text) ?? []
    const env = {
      CI: 'true',
      GITHUB_PATH: '/home/person/path',
      GITHUB_ENV: '/home/person/env',
      RUNNER_TEMP: '/tmp',
    }
    await root.output(`touch path env; ${PROJECT}`, { env })
    const steps = [actionScript('.', {}, '/opt/action'), stepScript(command)]
    await timed('a job of GitHub', root.output(`cd project; ${steps.join('')}`, { ...options, env }))
  },
  600_000,
)

test.skipIf(isSkipped)(
  'a job of GitLab gets berth by the template, and its tests pass',
  async () => {
    const root = await BareRoot.make('gitlab', { machine, network, packages: NODE })
    const options = { lent: CURL, shell: 'bash' }
    const text = readFileSync(join(release, 'berth.gitlab-ci.yml'), 'utf8')
    const [, command = ''] = /script: \[(.*)\]/.exec(text) ?? []
    await root.output(PROJECT)
    const env = { CI: 'true', CI_PROJECT_DIR: '/home/person/project' }
    const script = `cd project; ${gitlabScript()}\n${command}`
    await timed('a job of GitLab', root.output(script, { ...options, env }))
  },
  600_000,
)
