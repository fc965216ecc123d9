import { describe, expect, test } from 'bun:test'
import { ScenarioTexts } from '../../src/agents/scripted/model.ts'
import { readScenarios } from '../../src/agents/scripted/read.ts'
import { JsonReader } from '../../src/runtime/validation/json-reader.ts'
import { Validator } from '../../src/runtime/validation/validate.ts'

const validator = new Validator(ScenarioTexts)

/** Reads scenarios as the control API and fixtures files do: their shape is checked first. */
const read = (...scenarios: unknown[]) =>
  readScenarios(new JsonReader(validator.parse(scenarios, ['scenarios']), ['scenarios']))
const steps = [{ say: 'hi' }]

/** The values of a goal that matches, else null. */
function matched(match: unknown, goal: string): Record<string, string> | null {
  const [one] = read({ match, steps })
  const values = one?.scenario.matcher.match(goal)
  return values ? Object.fromEntries(values) : null
}

describe('a goal', () => {
  test.each([
    ['Deploy', ' Deploy\n', {}],
    ['Deploy', 'Deploy it', null],
    ['Deploy', 'deploy', null],
    ['a*', 'ab', null],
    [{ glob: '*deploy*' }, 'please deploy\nit now', {}],
    [{ glob: 'deploy ?' }, 'deploy a', {}],
    [{ glob: 'deploy ?' }, 'deploy ab', null],
    [{ glob: 'deploy ?' }, 'deploy 🙂', {}],
    [{ glob: 'what\\?' }, 'what?', {}],
    [{ glob: 'what\\?' }, 'whata', null],
    [{ glob: 'a.(b|c)[d]$' }, 'a.(b|c)[d]$', {}],
    [{ glob: 'a.(b|c)[d]$' }, 'axb', null],
    [{ regex: 'deploy' }, 'please deploy it', {}],
    [{ regex: '^deploy$' }, ' deploy ', {}],
    [{ regex: '^deploy$' }, 'deploy it', null],
    [{ regex: '(?i)DEPLOY (?P<app>\\w+)' }, 'deploy shop', { app: 'shop' }],
    [{ regex: '^(?:a(?<x>b)|c)$' }, 'c', { x: '' }],
  ])('%j is matched by %j: %j', (match, goal, values) => {
    expect(matched(match, goal)).toEqual(values)
  })

  test('takes no longer for an expression that keeps other engines busy without end', () => {
    const began = performance.now()
    for (const regex of ['^(a+)+$', '(x+x+)+y', '^(a|aa)+$', '(.*a){12}b']) {
      expect(matched({ regex }, `${'a'.repeat(16_000)}!`)).toBeNull()
    }
    expect(performance.now() - began).toBeLessThan(10_000)
  })

  test('is looked at by expressions as far as its first 16,384 characters', () => {
    expect(matched({ regex: 'end$' }, `${'a'.repeat(16_381)}end`)).toEqual({})
    expect(matched({ regex: 'end' }, `${'a'.repeat(16_382)}end`)).toBeNull()
    expect(matched('a'.repeat(20_000), 'a'.repeat(20_000))).toEqual({})
  })
})

describe('a mistake', () => {
  test('in a list of scenarios that is not a list, or too long', () => {
    expect(() => validator.parse({}, ['scenarios'])).toThrow(
      'expected an array of at most 1000 entries, got {}.',
    )
    const many = Array.from({ length: 1_001 }, () => ({ match: 'x', steps }))
    expect(() => read(...many)).toThrow('expected an array of at most 1000 entries, got 1001.')
  })
})
