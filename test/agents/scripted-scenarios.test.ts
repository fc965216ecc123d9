import { describe, expect, test } from 'bun:test'
import { ScenarioTexts } from '../../src/agents/scripted/model.ts'
import { readScenarios } from '../../src/agents/scripted/read.ts'
import { JsonReader } from '../../src/runtime/validation/json-reader.ts'
import { Validator } from '../../src/runtime/validation/validate.ts'
import { ValidationError } from '../../src/runtime/validation/validation-error.ts'

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

  test('takes no longer for an expression that keeps others busy for ever', () => {
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

const one = (step: unknown) => ({ match: 'x', steps: [step] })

describe('a mistake', () => {
  test.each([
    [{ match: 'x' }, '[0].steps', 'is missing: expected an array of 1 to 1000 entries'],
    [{ steps }, '[0].match', 'is missing: expected a string, {"glob": …}'],
    [{ match: 'x', steps: [] }, '[0].steps', 'expected an array of 1 to 1000 entries, got 0'],
    [{ match: 'x', steps: {} }, '[0].steps', 'expected an array of 1 to 1000 entries, got {}'],
    [{ match: 'x', steps, extra: 1 }, '[0].extra', 'is not a known field; known are name, match, steps'],
    [{ match: 'x', steps, name: ' ' }, '[0].name', 'not blank'],
    [{ match: 5, steps }, '[0].match', 'got 5'],
    [{ match: ' ', steps }, '[0].match', 'expected a string, {"glob": …} or {"regex": …}, got " "'],
    [{ match: { glob: 'a', regex: 'b' }, steps }, '[0].match', 'expected one of glob and regex, not both'],
    [{ match: { regx: 'a' }, steps }, '[0].match.regx', 'known are glob, regex'],
    [{ match: { regex: '(' }, steps }, '[0].match.regex', 'missing closing )'],
    [{ match: { regex: '(a)\\1' }, steps }, '[0].match.regex', 'no backreferences'],
    [{ match: { regex: '(?=a)' }, steps }, '[0].match.regex', 'no lookaround'],
    [
      { match: { regex: '(?:a{1,40}){1,20}(?:b{1,40}){1,20}' }, steps },
      '[0].match.regex',
      'a smaller expression',
    ],
    [{ match: { regex: '(?<goal>a)' }, steps }, '[0].match.regex', 'other names of groups'],
    [one('run'), '[0].steps[0]', 'an object with one of run, write'],
    [one({}), '[0].steps[0]', 'an object with one of run, write'],
    [one({ run: 'a', say: 'b' }), '[0].steps[0]', 'expected one of run and say, not both'],
    [
      one({ rum: 'a' }),
      '[0].steps[0].rum',
      'known are run, write, read, ask, say, wait, hold, complete, fail',
    ],
    [one({ run: '' }), '[0].steps[0].run', 'a string that is not blank'],
    [one({ run: 5 }), '[0].steps[0].run', 'a string that is not blank or an object with command, got 5'],
    [one({ run: {} }), '[0].steps[0].run.command', 'is missing: expected a string'],
    [one({ run: { command: 'a', timeout: 'x' } }), '[0].steps[0].run.timeout', 'a duration such as'],
    [one({ run: { command: 'a', timeout: 0 } }), '[0].steps[0].run.timeout', 'a duration such as'],
    [one({ run: { command: 'a', expect: 256 } }), '[0].steps[0].run.expect', 'an exit code from 0 to 255'],
    [one({ run: { command: 'a', as: 'goal' } }), '[0].steps[0].run.as', 'is not "goal"'],
    [one({ run: { command: 'a', as: 'a-b' } }), '[0].steps[0].run.as', 'a name of letters'],
    [one({ run: 'echo {{answer}}' }), '[0].steps[0].run', '(known here: goal), or \\{{answer}}'],
    [one({ run: "echo '{{goal}}'" }), '[0].steps[0].run', 'outside of single quotes'],
    [one({ write: 'a' }), '[0].steps[0].write', 'an object with path and content'],
    [one({ write: { path: 'a' } }), '[0].steps[0].write.content', 'is missing: expected a string'],
    [one({ write: { content: 'a' } }), '[0].steps[0].write.path', 'is missing: expected a string'],
    [one({ write: { path: 'a', content: '{{x}}' } }), '[0].steps[0].write.content', 'name of a value'],
    [
      one({ write: { path: 'a', content: 'b', verbatim: 1 } }),
      '[0].steps[0].write.verbatim',
      'true or false',
    ],
    [one({ read: {} }), '[0].steps[0].read.path', 'is missing: expected a string'],
    [one({ ask: '' }), '[0].steps[0].ask', 'not blank'],
    [one({ wait: 'soon' }), '[0].steps[0].wait', 'a duration such as'],
    [one({ wait: '400d' }), '[0].steps[0].wait', 'a duration such as'],
    [one({ hold: 'yes' }), '[0].steps[0].hold', 'expected true'],
    [{ match: 'x', steps: [{ fail: 'a' }, { say: 'b' }] }, '[0].steps[1]', '"fail" ends the work'],
  ])('is named by its place and reason: %j', (scenario, place, reason) => {
    let mistake: unknown
    try {
      read(scenario)
    } catch (error) {
      mistake = error
    }
    expect(mistake).toBeInstanceOf(ValidationError)
    const sentence = (mistake as ValidationError).sentence('body')
    expect(sentence).toStartWith(`"scenarios${place}" in the body`)
    expect(sentence).toContain(reason)
  })

  test('in a list of scenarios that is none, or too long', () => {
    expect(() => validator.parse({}, ['scenarios'])).toThrow(
      'expected an array of at most 1000 entries, got {}.',
    )
    const many = Array.from({ length: 1_001 }, () => ({ match: 'x', steps }))
    expect(() => read(...many)).toThrow('expected an array of at most 1000 entries, got 1001.')
  })
})
