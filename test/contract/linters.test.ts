import { describe, expect, test } from 'bun:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Spectral } from '@stoplight/spectral-core'
import { oas } from '@stoplight/spectral-rulesets'
import { describeApi, describeControl } from '../../src/instance/describe.ts'

/* The documents pass the linters that their readers use, by the linters' own default rules, without a network. */

describe.each([
  ['the API', describeApi],
  ['the control API', describeControl],
])('the document of %s', (_, describeIt) => {
  test("passes Spectral's rules for OpenAPI", async () => {
    const spectral = new Spectral()
    spectral.setRuleset({ extends: [oas as never] })
    const found = await spectral.run(structuredClone(await describeIt()) as never)
    expect(found.map(({ code, message, path }) => `${path.join('/')}: ${code}, ${message}`)).toEqual([])
  }, 60_000)

  test("passes Redocly's recommended rules", async () => {
    const config = await createConfig({ extends: ['recommended'] })
    const source = JSON.stringify(await describeIt())
    const found = await lintFromString({ source, absoluteRef: '/openapi.json', config })
    expect(
      found.map(({ ruleId, message, location }) => `${location[0]?.pointer}: ${ruleId}, ${message}`),
    ).toEqual([])
  }, 60_000)
})
