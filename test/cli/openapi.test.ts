import { expect, test } from 'bun:test'
import { run } from './command.ts'

test.each([
  { args: [], title: 'berth', path: '/servers/{serverId}/exec' },
  { args: ['--control'], title: 'berth, control API', path: '/_berth/clock' },
])('openapi $args prints the document of $title without an instance', async ({ args, title, path }) => {
  const { exitCode, stdout, stderr } = await run(['openapi', ...args])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const document = JSON.parse(stdout)
  expect(document.info).toMatchObject({ title, version: '0.1.0' })
  expect(Object.keys(document.paths)).toContain(path)
})
