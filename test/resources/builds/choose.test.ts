import { describe, expect, test } from 'bun:test'
import { chooseByKeywords } from '../../../src/resources/builds/plan/choose.ts'
import { KEYWORDS } from '../../../src/resources/builds/plan/keywords.ts'
import { TemplateCatalog } from '../../../src/resources/templates/catalog.ts'

const templates = new TemplateCatalog().list()
const chosen = (goal: string, present: string | null = null) => chooseByKeywords(goal, templates, present)
const idOf = (goal: string, present: string | null = null) => chosen(goal, present).template.id

describe('the words of a goal', () => {
  test.each([
    ['A landing page for a bakery', 'static-site'],
    ['Build me a portfolio web site', 'static-site'],
    ['build a todo api', 'bun-api'],
    ['A REST backend with endpoints for orders', 'bun-api'],
    ['notes', 'sqlite-notes'],
    ['I want to keep a diary in a database', 'sqlite-notes'],
    ['an API for notes', 'sqlite-notes'],
    ['A quick poll: pizza or pasta?', 'fullstack'],
    ['Dashboard for our sales', 'fullstack'],
    ['chat', 'websocket-chat'],
    ['Real-time messages between rooms', 'websocket-chat'],
    ['A Python API that counts words', 'python-api'],
    ['todo api in python', 'python-api'],
    ['LANDING PAGE', 'static-site'],
    ['A to-do API', 'bun-api'],
  ])('%s → %s', (goal, template) => expect(idOf(goal)).toBe(template))

  test('say first what counts: the rest matters only where the first line says nothing', () => {
    expect(idOf('A landing page\n\nIt must have a chat with rooms and messages.')).toBe('static-site')
    expect(idOf('For the team, by Friday:\nchat rooms, please')).toBe('websocket-chat')
  })

  test('are named as they were written, with what speaks for others', () => {
    expect(chosen('Landing pages with a chat').reason).toBe(
      '“Landing”, “pages” in the goal speak for it. Less was said for websocket-chat (“chat”).',
    )
  })

  test('without any, it is the simplest template', () => {
    for (const goal of ['Something nice', '…', '日本語', 'x'.repeat(2 ** 20)]) {
      expect(chosen(goal)).toMatchObject({ template: { id: 'static-site' }, steps: null })
      expect(chosen(goal).reason).toContain('No word of the goal')
    }
  })

  test('replace the template that is there only where they speak clearly for another', () => {
    expect(idOf('Make it blue', 'sqlite-notes')).toBe('sqlite-notes')
    expect(idOf('Make every page blue', 'sqlite-notes')).toBe('sqlite-notes')
    expect(idOf('A landing page', 'sqlite-notes')).toBe('static-site')
    expect(idOf('Add an API', 'python-api')).toBe('python-api')
    expect(idOf('chat', 'sqlite-notes')).toBe('websocket-chat')
  })

  test('of a goal that is made to be slow are read in no time', () => {
    const started = performance.now()
    chosen('landing-'.repeat(2 ** 17))
    expect(performance.now() - started).toBeLessThan(20_000)
  })
})

test('every template has words of its own, and each can be chosen', () => {
  expect(Object.keys(KEYWORDS).sort()).toEqual(templates.map(({ id }) => id).sort())
  for (const [id, words] of Object.entries(KEYWORDS)) {
    const strongest = Object.entries(words).sort(([, a], [, b]) => b - a)[0]?.[0] ?? ''
    expect(idOf(strongest)).toBe(id)
  }
})

test('a template for which nobody has chosen words is found by its name', () => {
  const added = {
    ...templates[0],
    id: 'go-worker',
    label: 'Worker in Go',
    description: '',
  } as (typeof templates)[0]
  expect(chooseByKeywords('A worker that mails', [...templates, added]).template).toBe(added)
})
