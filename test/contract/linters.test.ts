import { describe, expect, test } from 'bun:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Spectral } from '@stoplight/spectral-core'
import { oas } from '@stoplight/spectral-rulesets'
import { describeApi, describeControl } from '../../src/instance/describe.ts'

/** A WebSocket has no success of the kind that linters ask of every operation. */
const isSocketRule = (rule: string | number, pointer: string): boolean =>
  /^operation-(?:success-response|2xx-response)$/.test(String(rule)) &&
  /terminalId\}(?:\/|~1)attach/.test(pointer)

/* The documents pass the linters that their readers use, by the linters' own default rules, without a network. */

describe.each([
  ['the API', describeApi],
  ['the control API', describeControl],
])('the document of %s', (_, describeIt) => {
  test("passes Spectral's rules for OpenAPI", async () => {
    const spectral = new Spectral()
    spectral.setRuleset({ extends: [oas as never] })
    const found = await spectral.run(structuredClone(await describeIt()) as never)
    const wrong = found.filter(({ code, path }) => !isSocketRule(code, path.join('/')))
    expect(wrong.map(({ code, message, path }) => `${path.join('/')}: ${code}, ${message}`)).toEqual([])
  }, 120_000)

  test("passes Redocly's recommended rules", async () => {
    const config = await createConfig({ extends: ['recommended'] })
    const source = JSON.stringify(await describeIt())
    const found = await lintFromString({ source, absoluteRef: '/openapi.json', config })
    const wrong = found.filter(({ ruleId, location }) => !isSocketRule(ruleId, location[0]?.pointer ?? ''))
    expect(
      wrong.map(({ ruleId, message, location }) => `${location[0]?.pointer}: ${ruleId}, ${message}`),
    ).toEqual([])
  }, 120_000)
})
