import { expect, test } from 'bun:test'
import { describeApi, describeControl } from '../../src/instance/describe.ts'
import { berthForTests } from '../support/berth.ts'

const berth = await berthForTests()

/** Values that a sentence cannot be made of by writing them into it, and one that no encoding can carry. */
const AWKWARD: readonly unknown[] = [
  { toString: 1 },
  { valueOf: 1, toString: null },
  [[{ toJSON: 1 }]],
  '\ud800',
]

test.each([
  ['the API', describeApi],
  ['the control API', describeControl],
])(
  'no value of any field of %s is a fault of berth',
  async (_, describeIt) => {
    const { paths, components } = await describeIt()
    const properties = (schema: Record<string, unknown> | undefined): string[] => {
      const name = typeof schema?.$ref === 'string' ? schema.$ref.replace('#/components/schemas/', '') : ''
      const resolved = components.schemas[name] ?? schema
      return Object.keys((resolved?.properties as object | undefined) ?? {})
    }
    let tried = 0
    const faults: string[] = []
    for (const [path, methods] of Object.entries(paths)) {
      for (const [method, { requestBody }] of Object.entries(methods)) {
        for (const field of properties(requestBody?.content['application/json']?.schema)) {
          for (const value of AWKWARD) {
            tried += 1
            const authorization = `Bearer ${path.startsWith('/_berth') ? berth.info.admin_token : berth.info.api_key}`
            const { status } = await berth.call(
              method.toUpperCase(),
              path.replaceAll(/\{\w+\}/g, 'none'),
              { [field]: value },
              { authorization },
            )
            if (status >= 500)
              faults.push(`${method} ${path} {${field}: ${JSON.stringify(value)}} is ${status}`)
          }
        }
      }
    }
    expect(faults).toEqual([])
    expect(tried).toBeGreaterThan(50)
  },
  120_000,
)
