import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AppLog } from '../../../src/hosting/app-runtime/log/log.ts'
import { BuildTranscript } from '../../../src/resources/builds/implement/transcript.ts'
import { Masks } from '../../../src/runtime/masks.ts'
import { openLog } from '../../hosting/app-runtime/world.ts'
import { MovedClock } from '../../support/clock.ts'

let folder: string
let log: AppLog
let transcript: BuildTranscript
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'berth-transcript-'))
  const masks = new Masks()
  masks.add(['hunter2'])
  log = await openLog(folder, new MovedClock(), masks)
  transcript = new BuildTranscript(log, 'implement')
})
afterEach(async () => {
  await log.remove()
  rmSync(folder, { recursive: true, force: true })
})

const lines = async () => (await log.tail(100)).map(({ source, text }) => `${source}: ${text}`)

test('what an agent says and does becomes lines', async () => {
  transcript.report({ type: 'message', text: 'First I look around.\nThen I write.' })
  transcript.report({ type: 'toolCall', call: 'a', tool: 'list', input: { path: '' } })
  transcript.report({ type: 'toolResult', call: 'a', tool: 'list', ok: true, output: { files: 3 } })
  transcript.report({ type: 'toolCall', call: 'b', tool: 'write', input: { path: 'a.txt', content: 'x' } })
  transcript.report({
    type: 'toolResult',
    call: 'b',
    tool: 'write',
    ok: false,
    output: { error: 'The disk is full.' },
  })
  transcript.report({ type: 'terminal', text: 'a line of a program' })
  transcript.report({ type: 'notice', text: 'The request was repeated.' })
  transcript.end()
  expect(await lines()).toEqual([
    'implement: First I look around.',
    'implement: Then I write.',
    'implement: list {"path":""}',
    'implement: write a.txt',
    'implement: Failed: The disk is full.',
    'implement: a line of a program',
    'implement: The request was repeated.',
  ])
})

test('output of a command comes as it is printed, line by line, and not again at its end', async () => {
  const output = { stdout: 'one\ntwo\n', stderr: '', exitCode: 3, timedOut: false }
  transcript.report({ type: 'toolCall', call: 'a', tool: 'run', input: { command: 'make' } })
  transcript.addDelta({ type: 'output', call: 'a', stream: 'stdout', text: 'one\ntw' })
  transcript.addDelta({ type: 'output', call: 'a', stream: 'stdout', text: 'o\n' })
  expect(await lines()).toEqual(['implement: $ make', 'implement: one', 'implement: two'])
  transcript.report({ type: 'toolResult', call: 'a', tool: 'run', ok: false, output })
  expect((await lines()).slice(3)).toEqual(['implement: Failed with exit code 3.'])
})

test('output that nobody was shown comes with the result; pieces of a message do not come twice', async () => {
  const output = { stdout: 'all of it\n', stderr: 'and this\n', exitCode: 0 }
  transcript.addDelta({ type: 'text', text: 'I am about to say' })
  transcript.report({ type: 'toolResult', call: 'a', tool: 'run', ok: true, output })
  expect(await lines()).toEqual(['implement: all of it', 'implement: and this'])
})

test('the use of a model is reported once, in all; secrets never', async () => {
  transcript.report({ type: 'usage', inputTokens: 10, outputTokens: 1 })
  transcript.report({ type: 'usage', inputTokens: 30, outputTokens: 5, cost: 0.0123 })
  transcript.report({ type: 'message', text: 'The password is hunter2.' })
  transcript.end()
  expect(await lines()).toEqual([
    'implement: The password is ***.',
    'implement: Used 30 tokens of input and 5 of output, 0.0123 US dollars.',
  ])
})
