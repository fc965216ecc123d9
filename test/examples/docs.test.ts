import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { EXAMPLES, SUITES } from './suites.ts'

const DOCS = join(EXAMPLES, '..')
const page = readFileSync(join(DOCS, 'testing.md'), 'utf8')

test('every snippet that names a file of an example stands in it, to the letter', () => {
  const snippets = [...page.matchAll(/^```\w+ (\S+)\n([\s\S]*?)^```$/gm)]
  expect(snippets.length).toBeGreaterThan(8)
  for (const [, path = '', text = ''] of snippets)
    expect([path, readFileSync(join(DOCS, path), 'utf8').includes(text)]).toEqual([path, true])
})

test('every example is in the table, and every file that the page leads to is there', () => {
  for (const { name } of SUITES) expect(page).toContain(`[${name}](examples/${name})`)
  const links = [...page.matchAll(/\]\(([^)#:]+)\)/g)].map(([, path = '']) => path)
  for (const path of links) expect(() => readdirSync(join(DOCS, path, '..'))).not.toThrow()
  const missing = links.filter(
    (path) => !readdirSync(join(DOCS, path, '..')).includes(path.split('/').at(-1) ?? ''),
  )
  expect(missing).toEqual([])
})
