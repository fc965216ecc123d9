import { expect, test } from 'bun:test'
import { serve } from './command.ts'

test('templates are listed for people and for programs', async () => {
  await using berth = await serve()
  const { templates } = JSON.parse((await berth.run(['templates', '--json'])).stdout)
  expect(templates.length).toBeGreaterThan(0)
  const { exitCode, stdout, stderr } = await berth.run(['templates'])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const [heading, ...lines] = stdout.trimEnd().split('\n')
  expect(heading).toMatch(/^ID +LABEL +DESCRIPTION$/)
  expect(lines.map((line) => line.split(' ')[0])).toEqual(templates.map(({ id }: { id: string }) => id))
})
