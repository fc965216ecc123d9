import { expect, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { ready } from '../../support/projects.ts'

const berth = await berthForTests({ flags: { plan: { projects: { small: 20 } } } })
const serverId = await berth.server()

/** What each template's app answers at its root. */
const TEMPLATES: Record<string, RegExp> = {
  'static-site': /<!doctype html>/i,
  'bun-api': /./,
  'sqlite-notes': /<!doctype html>/i,
  fullstack: /<!doctype html>/i,
  'websocket-chat': /<!doctype html>/i,
  'python-api': /<!doctype html>/i,
}

test('every template is tried here', async () => {
  const { templates } = (await berth.call('GET', '/templates')).body
  expect(templates.map(({ id }: { id: string }) => id).sort()).toEqual(Object.keys(TEMPLATES).sort())
})

for (const [template, expected] of Object.entries(TEMPLATES)) {
  const missing = template === 'python-api' && Bun.which('python3') === null
  if (missing) console.error(`SKIP: ${template}, since python3 is not installed`)
  test.skipIf(missing)(`a project made from ${template} answers`, async () => {
    const project = await ready(berth, serverId, { template, visibility: 'public' })
    expect(project.template).toBe(template)
    const response = await fetch(project.url ?? '')
    expect(response.status).toBeLessThan(500)
    expect(await response.text()).toMatch(expected)
    const { files } = (await berth.call('GET', `/servers/${serverId}/files`)).body
    expect(files).toContain(`projects/${project.slug}/README.md`)
  })
}

test('what a template says of name and description holds where the request does not say otherwise', async () => {
  const { templates } = (await berth.call('GET', '/templates')).body
  const [{ defaults }] = templates
  const made = await ready(berth, serverId, { template: 'static-site' })
  expect(made).toMatchObject({
    name: defaults.name,
    description: defaults.description,
    visibility: 'private',
  })
  const named = await ready(berth, serverId, { template: 'static-site', name: 'mine' })
  expect(named).toMatchObject({ name: 'mine', slug: 'mine' })
})
