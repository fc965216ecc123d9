import { expect, test } from 'bun:test'
import { describeMissingTool, isMissing } from '../../src/hosting/tool-names.ts'

test.each([
  ['/bin/sh: 1: mvn: not found', 'It needs Maven, which is not installed on this machine'],
  ['bash: line 1: javac: command not found', 'It needs Java, which is not installed on this machine'],
  ['./build.sh: line 3: go: command not found', 'It needs Go, which is not installed on this machine'],
])('the output of a shell that lacks a tool, %s, is explained', (line, sentence) => {
  expect(describeMissingTool(['Building', line], false)).toStartWith(sentence)
})

test('what a server with an image lacks is for the image to have', () => {
  expect(describeMissingTool(['sh: 1: cargo: not found'], true)).toStartWith(
    'It needs Rust, which the image of the server does not have. On Docker, "berth engine prepare --base rust:1 --pull" makes one that has it',
  )
  expect(isMissing('mdbook', true, null)).toContain('--base IMAGE')
})

test.each([
  ['go', '1.21', 'golang:1.21'],
  ['python', '>=3.13,<4', 'python:3.13'],
  ['ruby', '~> 3.1.2', 'ruby:3.1'],
  ['java', '21', 'eclipse-temurin:21'],
  ['python', '<3.11', 'python:3'],
])('an image for %s %s is named: %s', (name, wanted, image) => {
  expect(isMissing(name, true, wanted)).toContain(`--base ${image} --pull`)
})

test.each([
  ['sh: 1: vite: not found'],
  ['/bin/sh: 1: ./start.sh: not found'],
  ['Error: the table java: not found in the schema'],
  ['constructor: not found'],
])('other output, %s, names no tool', (line) => {
  expect(describeMissingTool([line], true)).toBeNull()
})
