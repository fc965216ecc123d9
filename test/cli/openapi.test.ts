import { expect, test } from 'bun:test'
import { run } from './command.ts'

test('openapi prints the document without an instance', async () => {
  const { exitCode, stdout, stderr } = await run(['openapi'])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const document = JSON.parse(stdout)
  expect(document.info.version).toBe('0.1.0')
  expect(Object.keys(document.paths)).toContain('/servers/{serverId}/exec')
})
