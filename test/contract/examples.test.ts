import { describe, expect, test } from 'bun:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describeApi, describeControl } from '../../src/instance/describe.ts'

/* What the documents show as a request or a response is one: it fits its schema. */

describe.each([
  ['the API', describeApi],
  ['the control API', describeControl],
])('in the document of %s', (_, describeIt) => {
  test('every JSON body has an example that fits its schema', async () => {
    const document = await describeIt()
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    ajv.addSchema({ $id: 'openapi', components: document.components })
    const wrong: string[] = []
    let count = 0
    for (const operation of Object.values(document.paths).flatMap((methods) => Object.values(methods))) {
      const successes = Object.entries(operation.responses).filter(([status]) => status < '300')
      for (const [place, { content }] of [['request', operation.requestBody ?? {}] as const, ...successes]) {
        const json = content?.['application/json']
        if (!json) continue
        count += 1
        const schema = JSON.parse(JSON.stringify(json.schema).replaceAll('"#/', '"openapi#/'))
        const where = `${operation.operationId} ${place}`
        if (json.example === undefined) wrong.push(`${where} has none`)
        else if (!ajv.validate(schema, json.example))
          wrong.push(`${where} ${JSON.stringify(json.example)}: ${ajv.errorsText()}`)
      }
    }
    expect(wrong).toEqual([])
    expect(count).toBeGreaterThan(40)
  })
})
