import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { TemplateCatalog } from '../../src/resources/templates/catalog.ts'
import type { ProjectTemplate } from '../../src/resources/templates/model.ts'
import { type TestBerth, testBerth } from '../support/berth.ts'

const apps = join(import.meta.dir, '../../src/resources/templates/apps')
const ids = new TemplateCatalog().list().map(({ id }) => id)
const byCatalog = (a: string, b: string) => ids.indexOf(a) - ids.indexOf(b)

describe('GET /templates', () => {
  let berth: TestBerth
  beforeAll(async () => {
    berth = await testBerth()
  })
  afterAll(() => berth[Symbol.asyncDispose]())

  test('lists every template with the defaults of a project made from it', async () => {
    const { status, body } = await berth.call('GET', '/templates')
    expect(status).toBe(200)
    expect(Object.keys(body)).toEqual(['templates'])
    expect(body.templates.map(({ id }: ProjectTemplate) => id)).toEqual(readdirSync(apps).sort(byCatalog))
    for (const template of body.templates) {
      expect(Object.keys(template)).toEqual(['id', 'label', 'description', 'defaults'])
      expect(template.defaults).toEqual({
        name: template.label,
        description: template.description,
        visibility: 'private',
        lifecycle: 'persistent',
      })
    }
  })

  test('is open to scoped keys and closed without one', async () => {
    const server = await berth.server()
    const { key } = (await berth.call('POST', '/keys', { label: 'x', allowed_server_ids: [server] })).body
    const scoped = await berth.call('GET', '/templates', undefined, { authorization: `Bearer ${key}` })
    expect(scoped.body).toEqual((await berth.call('GET', '/templates')).body)
    expect((await fetch(`${berth.info.base_url}/templates`)).status).toBe(401)
  })
})
