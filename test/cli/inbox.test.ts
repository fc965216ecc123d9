import { expect, test } from 'bun:test'
import { serveForTests, start } from './command.ts'

const berth = await serveForTests(['--isolation', 'none', '--allow-local-webhooks'])

const urlOf = (name: string) => `${berth.info.base_url}/_berth/inbox/${name}`
const post = (name: string, body: string) => fetch(urlOf(name), { method: 'POST', body })
const out = async (...args: string[]) => {
  const { exitCode, stdout, stderr } = await berth.run(['inbox', ...args])
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return stdout
}

test('an inbox is listed, shown with its verdicts and emptied from the terminal', async () => {
  expect(await out()).toBe(`Nothing yet. Point a webhook at ${urlOf('NAME')}.\n`)
  expect(await out('show', 'mine')).toBe(`Nothing yet. It is at ${urlOf('mine')}.\n`)
  await berth.run(['webhooks', 'create', urlOf('mine?respond=503')])
  const { id } = JSON.parse((await berth.run(['trigger', 'task.failed', '--json'])).stdout)
  await post('mine', 'by \u001b[31mhand')
  await post('other', 'x')
  expect(await out('list')).toMatch(/^INBOX +ENTRIES +SIZE +LAST\nother +1 .*\nmine +2 .*\n$/)
  const shown = await out('show', 'mine')
  expect(shown).toMatch(
    /^msg_\w+ {2}\S+Z {2}answered 503 {2}\?respond=503\n {2}✓ Signed with the secret of the webhook wh_\w+\.\n/,
  )
  expect(shown).toContain(`  webhook-id: ${id}\n`)
  expect(shown).toContain('\n    "event": "task.failed",\n')
  expect(shown).toMatch(/answered 200\n {2}\? It is not signed: .*\n(?: {2}.*\n)* {2}by hand\n\n$/)
  const { entries } = JSON.parse(await out('show', 'mine', '--json', '--limit', '1'))
  expect(entries).toMatchObject([{ verified: null, body: 'by \u001b[31mhand' }])
  const { stdout: offered } = await berth.run(['__complete', 'fish', '--', 'inbox', 'show', 'm'])
  expect(offered).toMatch(/^words\nmine\t\S+Z\n$/)
  expect(await out('clear', 'mine')).toBe('Removed 2 entries.\n')
  expect(JSON.parse(await out('clear', '--all', '--json'))).toEqual({ removed: 1 })
  expect(await berth.run(['inbox', 'clear'])).toMatchObject({ exitCode: 2, stdout: '' })
})

test('an inbox is followed, from what it has got', async () => {
  await post('followed', '1')
  const child = start(['inbox', 'show', 'followed', '-f', '--json'], { cwd: berth.cwd })
  const bodies: string[] = []
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    for (const line of chunk.trimEnd().split('\n')) bodies.push(JSON.parse(line).body)
    if (bodies.length === 3) child.kill('SIGINT')
    else await post('followed', String(bodies.length + 1))
  }
  expect([bodies, await child.exited]).toEqual([['1', '2', '3'], 130])
})
