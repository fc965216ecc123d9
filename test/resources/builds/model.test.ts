import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { TestBerth } from '../../support/berth.ts'
import { begun, buildLog, built, over, shownBuild, statesOf } from '../../support/builds.ts'
import { saidIn, systemIn, toolsIn } from '../../support/model-servers/bodies.ts'
import { call, finish, type ModelRequest } from '../../support/model-servers/reply.ts'
import { type ModelServer, modelServer } from '../../support/model-servers/server.ts'
import { berthWith } from '../../support/model-servers/tasks.ts'

let model: ModelServer
let berth: TestBerth
beforeAll(async () => {
  model = modelServer('openai', [])
  berth = await berthWith(model)
})
afterAll(async () => {
  await berth[Symbol.asyncDispose]()
  model[Symbol.dispose]()
})

const read = async (serverId: string, path: string): Promise<string> =>
  (await berth.call('GET', `/servers/${serverId}/files?path=${path}`)).body.content

const request = (n: number) => model.requests[n] as ModelRequest

describe('a build by a language model', () => {
  test('is planned, implemented and published; plan and log tell what was done', async () => {
    const serverId = await berth.server()
    model.lay([
      call('plan', { template: 'static-site', steps: '1. Write the page.\n2. Mention the bread.' }),
      { text: 'I write the page.', ...call('write', { path: 'index.html', content: 'We bake bread.' }) },
      finish('The page mentions the bread.'),
    ])
    const build = await built(berth, serverId, 'Something for people who are hungry')
    if (build.url === null) throw new Error(await buildLog(berth, serverId, build.id))
    expect(await (await fetch(build.url)).text()).toBe('We bake bread.')
    expect(build.artifacts).toContain('index.html')

    expect(toolsIn('openai', request(0))).toEqual(['plan'])
    expect(saidIn('openai', request(0))[0]?.text).toContain('websocket-chat')
    // Nobody is there to be asked.
    expect(toolsIn('openai', request(1))).not.toContain('ask')
    expect(saidIn('openai', request(1))[0]?.text).toContain('Something for people who are hungry')
    const told = systemIn('openai', request(1))
    for (const part of [
      'PLAN.md',
      'template static-site',
      'The plan:\n\n1. Write the page.',
      'do not start it',
    ])
      expect(told).toContain(part)

    const plan = await read(serverId, 'PLAN.md')
    for (const part of [
      'Why this one: The agent chose it.',
      "## The agent's plan\n\n1. Write the page.\n2. Mention the bread.",
      '> The page mentions the bread.\n\n- Changed: index.html.',
    ])
      expect(plan).toContain(part)
    const log = await buildLog(berth, serverId, build.id)
    for (const line of [
      'plan: Used 100 tokens of input and 20 of output.',
      'plan: Template static-site: The agent chose it.',
      'implement: I write the page.',
      'implement: write index.html',
      'implement: The page mentions the bread.',
      'implement: Used 200 tokens of input and 40 of output.',
      'implement: Changed: index.html.',
    ])
      expect(log.split('\n')).toContain(line)
  })

  test('that plans nothing usable goes by the words of the goal, and says so', async () => {
    const serverId = await berth.server()
    model.lay([{ text: 'I would rather not.' }, { text: 'No.' }, finish('Left as it is.')])
    const build = await built(berth, serverId, 'A landing page')
    expect(build.url).not.toBeNull()
    expect(await buildLog(berth, serverId, build.id)).toContain(
      'plan: The agent could not plan: The model made no plan',
    )
    expect(await read(serverId, 'PLAN.md')).toContain('The template **static-site**.')
    expect(await read(serverId, 'PLAN.md')).toContain('No file was changed.')
  })

  test('that gives up, or cannot be reached, fails in implement', async () => {
    const serverId = await berth.server()
    const refused = () => new Response('{"error":{"message":"no such model"}}', { status: 404 })
    model.lay([call('plan', { template: 'static-site', steps: 'x' }), finish('There is no oven.', 'failed')])
    const given = await built(berth, serverId, 'A landing page')
    model.lay([refused])
    const unreachable = await built(berth, serverId, 'A landing page')
    for (const build of [given, unreachable]) {
      expect(build.url).toBeNull()
      expect(statesOf(build)).toEqual(['done', 'done', 'pending', 'pending', 'pending', 'pending'])
    }
    expect(await buildLog(berth, serverId, given.id)).toContain(
      'failed in the phase implement: There is no oven.',
    )
    expect(await buildLog(berth, serverId, unreachable.id)).toContain('no such model')
  })

  test('goes on with an app that it has worked on, without a plan', async () => {
    const serverId = await berth.server()
    model.lay([
      call('plan', { template: 'static-site', steps: 'x' }),
      call('write', { path: 'index.html', content: 'bread' }),
      finish('Bread.'),
    ])
    await built(berth, serverId, 'A page')
    model.lay([call('write', { path: 'index.html', content: 'cake' }), finish('Cake.')])
    const build = await built(berth, serverId, 'Now a chat about cake')
    expect(await (await fetch(build.url ?? '')).text()).toBe('cake')
    expect(toolsIn('openai', request(0))).toContain('write')
    expect(systemIn('openai', request(0))).toContain('It was there before: static files.')
  })

  test('is cut off where the server stops amid an answer', async () => {
    const serverId = await berth.server()
    model.lay([call('plan', { template: 'static-site', steps: 'x' }), () => new Promise(() => {})])
    const id = await begun(berth, serverId, 'A landing page')
    const asked = await model.came(2)
    await berth.call('POST', `/servers/${serverId}/actions`, { action: 'stop' })
    expect(await shownBuild(berth, serverId, id)).toMatchObject({ status: 'completed', url: null })
    await asked.gone
    model.lay([finish('As it is.')])
    const next = await over(berth, serverId, await begun(berth, serverId, 'A landing page'))
    expect(next.status).toBe('completed')
  })
})
