import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type Agent, AgentError, type AgentPlan, type PlanRequest } from '../../../src/agents/agent.ts'
import type { AppLog } from '../../../src/hosting/app-runtime/log/log.ts'
import { Preparation } from '../../../src/hosting/preparation.ts'
import type { Packages } from '../../../src/hosting/registries/packages.ts'
import type { BuildContext } from '../../../src/resources/builds/context.ts'
import { applyScaffold } from '../../../src/resources/builds/files/scaffold.ts'
import { takeSnapshot } from '../../../src/resources/builds/files/snapshot.ts'
import type { StartingPoint } from '../../../src/resources/builds/plan/document.ts'
import { chooseStartingPoint } from '../../../src/resources/builds/plan/starting-point.ts'
import { type BuildRow, pendingSteps } from '../../../src/resources/builds/table.ts'
import type { ServerRow } from '../../../src/resources/servers/table.ts'
import { TemplateCatalog } from '../../../src/resources/templates/catalog.ts'
import { World } from '../../hosting/app-runtime/world.ts'

const catalog = new TemplateCatalog()
// Finding out about an app needs no package.
const preparation = new Preparation({} as Packages)

let world: World
let log: AppLog
let logs = 0
beforeAll(async () => {
  world = await World.open()
})
afterAll(() => world[Symbol.asyncDispose]())
beforeEach(async () => {
  logs += 1
  log = await world.log(`build-${logs}`)
  await shell('find . -mindepth 1 -delete')
})

const shell = (command: string) => world.sandbox.exec({ command, timeoutMs: 10_000, onOutput() {} }).exit

const rowOf = (goal: string, rest: Partial<BuildRow> = {}): BuildRow => ({
  id: `bld_${'0'.repeat(26)}`,
  accountId: 'acct',
  serverId: 'srv_apps',
  goal,
  status: 'running',
  steps: pendingSteps(),
  artifacts: [],
  template: null,
  scaffold: [],
  url: null,
  createdAt: 0,
  ...rest,
})

/** An agent that plans so; it is never asked to work. */
const planner = (plan: (planning: PlanRequest) => Promise<AgentPlan>): Agent => ({
  plan,
  work: () => Promise.reject(new Error('not asked for')),
})

const NO_PLANNER: Agent = { work: planner(async () => ({ template: '', steps: '' })).work }

async function decide(
  goal: string,
  agent: Agent = NO_PLANNER,
  earlier: BuildRow[] = [],
  signal = new AbortController().signal,
): Promise<StartingPoint> {
  const { workspace, sandbox } = world
  const isExcluded = () => false
  const work: BuildContext = {
    ...{ row: rowOf(goal), server: {} as ServerRow, sandbox, workspace, log, signal, isExcluded },
    environment: () => ({}),
  }
  const snapshot = await takeSnapshot(workspace, isExcluded)
  return chooseStartingPoint(work, { preparation, catalog, agent, earlier, snapshot })
}

const told = async (): Promise<string> =>
  (await log.tail(100)).map(({ source, text }) => `${source}: ${text}`).join('\n')

describe('an agent that plans', () => {
  test('chooses the template, among those that the machine can run, and says how to go on', async () => {
    let asked: PlanRequest | undefined
    const agent = planner(async (planning) => {
      asked = planning
      planning.report({ type: 'message', text: 'A chat fits best.' })
      planning.report({ type: 'usage', inputTokens: 12, outputTokens: 3 })
      return { template: 'websocket-chat', steps: '- rename the rooms' }
    })
    const startingPoint = await decide('A landing page', agent)
    expect(startingPoint).toMatchObject({
      kind: 'template',
      choice: {
        template: { id: 'websocket-chat' },
        reason: 'The agent chose it.',
        steps: '- rename the rooms',
      },
    })
    expect(asked?.goal).toBe('A landing page')
    const python = Bun.which('python3') !== null
    expect(asked?.templates.map(({ id }) => id)).toEqual(
      catalog
        .list()
        .map(({ id }) => id)
        .filter((id) => python || id !== 'python-api'),
    )
    expect(await told()).toContain('plan: A chat fits best.\nplan: Used 12 tokens of input and 3 of output.')
  })

  test.each([
    [
      'that cannot',
      () => Promise.reject(new AgentError('The model does not answer.')),
      'The model does not answer.',
    ],
    ['that names none of the templates', async () => ({ template: 'rails', steps: '' }), '"rails"'],
  ])('%s leaves it to the words of the goal, and the log says so', async (_, plan, why) => {
    const startingPoint = await decide('A landing page', planner(plan))
    expect(startingPoint).toMatchObject({
      kind: 'template',
      choice: { template: { id: 'static-site' }, steps: null },
    })
    if (startingPoint.kind === 'template') expect(startingPoint.choice.reason).toContain(why)
    expect(await told()).toContain(why)
  })

  test('that is called off is not replaced by words', async () => {
    const abort = new AbortController()
    const agent = planner(async () => {
      abort.abort(new Error('called off'))
      throw new AgentError('The model was interrupted.')
    })
    await expect(decide('x', agent, [], abort.signal)).rejects.toThrow('called off')
  })

  test('is not asked where somebody’s app is there', async () => {
    await world.workspace.write('index.html', new TextEncoder().encode('mine'))
    const agent = planner(() => Promise.reject(new Error('it was asked')))
    expect((await decide('chat', agent)).kind).toBe('app')
    expect(await told()).not.toContain('it was asked')
  })
})

describe('a template that an earlier build copied', () => {
  /** Copies it, as far as it is said, and gives the record of the build that did. */
  async function copied(template: string, files = Number.POSITIVE_INFINITY): Promise<BuildRow> {
    const startingPoint = await decide(template === 'static-site' ? 'A landing page' : 'build a todo api')
    if (startingPoint.kind !== 'template') throw new Error('there is an app already')
    expect(startingPoint.choice.template.id).toBe(template)
    const { copies } = startingPoint.scaffold
    const isWhole = files > copies.length
    await applyScaffold(world.workspace, catalog, {
      ...startingPoint.scaffold,
      copies: copies.slice(0, files),
    })
    const status = isWhole ? 'done' : 'pending'
    const steps = pendingSteps().map((step) =>
      step.key === 'scaffold' ? { ...step, status } : step,
    ) as BuildRow['steps']
    return rowOf('earlier', { template, scaffold: copies.map(({ path }) => path), steps })
  }

  test('whole, is the app that a goal of its kind goes on with', async () => {
    const earlier = await copied('bun-api')
    const startingPoint = await decide('Another todo api', NO_PLANNER, [earlier])
    expect(startingPoint).toMatchObject({ kind: 'app', description: 'Node.js (bun)' })
    if (startingPoint.kind === 'app')
      expect(startingPoint.reason).toContain('from the template bun-api, which fits this goal too')
  })

  test('cut short, is completed', async () => {
    const earlier = await copied('static-site', 5)
    const startingPoint = await decide('A landing page', NO_PLANNER, [earlier])
    if (startingPoint.kind !== 'template') throw new Error('it goes on with half a template')
    expect(startingPoint.scaffold.kept).toEqual([])
    await applyScaffold(world.workspace, catalog, startingPoint.scaffold)
    const files = [...(await catalog.files('static-site'))].map(({ path }) => path)
    expect(await world.workspace.list({ all: true })).toEqual(files.sort())
  })

  test('cut short, gives way as a whole one does', async () => {
    const earlier = await copied('static-site', 5)
    const startingPoint = await decide('build a todo api', NO_PLANNER, [earlier])
    if (startingPoint.kind !== 'template') throw new Error('it goes on with half a template')
    await applyScaffold(world.workspace, catalog, startingPoint.scaffold)
    const files = [...(await catalog.files('bun-api'))].map(({ path }) => path)
    expect(await world.workspace.list({ all: true })).toEqual(files.sort())
  })

  test('a file that somebody changes between the plan and the copying stays', async () => {
    const earlier = await copied('static-site')
    const startingPoint = await decide('build a todo api', NO_PLANNER, [earlier])
    if (startingPoint.kind !== 'template') throw new Error('it does not give way')
    await world.workspace.write('index.html', new TextEncoder().encode('mine'))
    await applyScaffold(world.workspace, catalog, startingPoint.scaffold)
    expect(new TextDecoder().decode(await world.workspace.read('index.html'))).toBe('mine')
  })

  test('links that stand where the template has files stay, and lead nowhere else', async () => {
    await shell('mkdir apart; ln -s apart/x README.md; ln -s /etc/passwd tsconfig.json; ln -s apart src')
    const startingPoint = await decide('build a todo api')
    if (startingPoint.kind !== 'template') throw new Error('there is no app')
    expect(startingPoint.scaffold.kept).toEqual(['README.md', 'tsconfig.json'])
    await applyScaffold(world.workspace, catalog, startingPoint.scaffold)
    // A folder may be a link: what is in it was made by nobody else.
    expect((await world.workspace.entries('apart')).map(({ name }) => name)).toEqual([
      ...['api.ts', 'http.ts', 'server.ts', 'tasks.ts'],
    ])
  })
})
