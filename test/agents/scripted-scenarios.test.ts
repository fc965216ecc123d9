import { describe, expect, test } from 'bun:test'
import { readScenarios } from '../../src/agents/scripted/read.ts'
import { Given, Mistake } from '../../src/contract/given.ts'

const read = (...scenarios: unknown[]) => readScenarios(new Given(scenarios, ['scenarios']))
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
    [{ match: 'x' }, '[0].steps', 'it is missing; expected a list of steps'],
    [{ steps }, '[0].match', 'it is missing; expected a text, {"glob": …}'],
    [{ match: 'x', steps: [] }, '[0].steps', 'expected 1 to 1000 steps, got 0'],
    [{ match: 'x', steps: {} }, '[0].steps', 'expected a list of steps, got {}'],
    [{ match: 'x', steps, extra: 1 }, '[0].extra', 'there is no such field; known are name, match, steps'],
    [{ match: 'x', steps, name: ' ' }, '[0].name', 'not empty'],
    [{ match: 5, steps }, '[0].match', 'got 5'],
    [{ match: ' ', steps }, '[0].match', 'not empty'],
    [{ match: { glob: 'a', regex: 'b' }, steps }, '[0].match', 'expected a text'],
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
    [one({ run: 'a', say: 'b' }), '[0].steps[0]', 'each is a step of its own'],
    [
      one({ rum: 'a' }),
      '[0].steps[0].rum',
      'known are run, write, read, ask, say, wait, hold, complete, fail',
    ],
    [one({ run: '' }), '[0].steps[0].run', 'a command that is not empty'],
    [one({ run: 5 }), '[0].steps[0].run', 'a text, or an object with command, got 5'],
    [one({ run: {} }), '[0].steps[0].run.command', 'it is missing'],
    [one({ run: { command: 'a', timeout: 'x' } }), '[0].steps[0].run.timeout', 'a duration such as'],
    [one({ run: { command: 'a', timeout: 0 } }), '[0].steps[0].run.timeout', 'a duration such as'],
    [one({ run: { command: 'a', expect: 256 } }), '[0].steps[0].run.expect', 'an exit code from 0 to 255'],
    [one({ run: { command: 'a', as: 'goal' } }), '[0].steps[0].run.as', 'is not "goal"'],
    [one({ run: { command: 'a', as: 'a-b' } }), '[0].steps[0].run.as', 'a name of letters'],
    [one({ run: 'echo {{answer}}' }), '[0].steps[0].run', '(known here: goal), or \\{{answer}}'],
    [one({ run: "echo '{{goal}}'" }), '[0].steps[0].run', 'outside of single quotes'],
    [one({ write: 'a' }), '[0].steps[0].write', 'an object with path and content'],
    [one({ write: { path: 'a' } }), '[0].steps[0].write.content', 'it is missing'],
    [one({ write: { content: 'a' } }), '[0].steps[0].write.path', 'it is missing'],
    [one({ write: { path: 'a', content: '{{x}}' } }), '[0].steps[0].write.content', 'name of a value'],
    [
      one({ write: { path: 'a', content: 'b', verbatim: 1 } }),
      '[0].steps[0].write.verbatim',
      'true or false',
    ],
    [one({ read: {} }), '[0].steps[0].read.path', 'it is missing'],
    [one({ ask: '' }), '[0].steps[0].ask', 'not empty'],
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
    expect(mistake).toBeInstanceOf(Mistake)
    expect((mistake as Mistake).sentence('in the body')).toStartWith(`"scenarios${place}" in the body: `)
    expect((mistake as Mistake).reason).toContain(reason)
  })

  test('in a list of scenarios that is none, or too long', () => {
    expect(() => readScenarios(new Given({}, ['scenarios']))).toThrow('expected a list of scenarios, got {}.')
    const many = Array.from({ length: 1_001 }, () => ({ match: 'x', steps }))
    expect(() => read(...many)).toThrow('expected at most 1000 scenarios, got 1001.')
  })
})
