import { expect, test } from 'bun:test'
import type { Command } from 'commander'
import { CATALOG } from '../../src/cli/commands/index.ts'
import { createProgram, newSession } from '../../src/cli/program.ts'
import type { CliSession } from '../../src/cli/session.ts'
import { codeLines, inlineCode, PAGES } from './pages.ts'

test('every command and every flag that a page shows exists', () => {
  const program = createProgram(session(), CATALOG)
  const wrong = PAGES.flatMap((page) =>
    [...codeLines(page), ...inlineCode(page)]
      .flatMap(commandsIn)
      .map((words) => ({ words, problem: problemOf(program, words) }))
      .filter(({ problem }) => problem !== null)
      .map(({ words, problem }) => `${page.path}: berth ${words.join(' ')}: ${problem}`),
  )
  expect(wrong).toEqual([])
})

test('the check finds a command and a flag that do not exist', () => {
  const program = createProgram(session(), CATALOG)
  const problems = [
    'berth servers lst',
    'X=$(berth servers create --taks demo)',
    'berth run --nope -- bun test --parallel=4',
    'BERTH_PORT=1 berth serv',
  ].map((line) => commandsIn(line).map((words) => problemOf(program, words)))
  expect(problems).toEqual([
    ['no command "lst"'],
    ['no flag --taks'],
    ['no flag --nope'],
    ['no command "serv"'],
  ])
})

/** Returns the words behind each `berth` of a shell line, up to the command's end or its `--`. */
function commandsIn(line: string): string[][] {
  // A sentence is output of berth, and a text in quotes is an argument.
  if (/^#|\.$/.test(line)) return []
  const bare = line.replaceAll('\\|', '|').replace(/'[^']*'|"[^"$]*"/g, 'TEXT')
  const commands = bare.matchAll(
    /(?:^(?:\$ |- run: )?|\$\(|[|;&] |\b[A-Z_]+=\S* )berth((?: +(?!\|)[^\s#;&<>()]+)+)/g,
  )
  return [...commands]
    .map(([, words = '']) => words.trim().split(/ +/))
    .map((words) => (words.includes('--') ? words.slice(0, words.indexOf('--')) : words))
}

/** Says what of a command does not exist, or null. */
function problemOf(program: Command, words: readonly string[]): string | null {
  let command = program
  let position = 0
  for (const word of words) {
    if (!/^[a-z]/.test(word) || command.commands.length === 0) break
    // `servers list|create` names several commands.
    const names = word.split('|')
    const found = names.map((name) =>
      command.commands.find((one) => [one.name(), ...one.aliases()].includes(name)),
    )
    const missing = names.find((_, index) => found[index] === undefined)
    if (word === 'help') return null
    if (missing !== undefined) return `no command "${missing}"`
    position += 1
    if (found[0] === undefined || names.length > 1) return null
    command = found[0]
  }
  // A noun alone, as in `berth keys --json`, lists.
  const options = [command, ...command.commands.filter((one) => one.name() === 'list')].flatMap(
    (one) => one.options,
  )
  const flags = words.slice(position).filter((word) => /^--[a-z]/.test(word))
  const known = (flag: string) =>
    ['--help', '--version'].includes(flag) ||
    options.some((one) => one.long === flag || `--no-${one.long?.slice(2)}` === flag)
  const unknown = flags
    .map((flag) => flag.replace(/=.*/, '').replace(/[,.:]$/, ''))
    .find((flag) => !known(flag))
  return unknown === undefined ? null : `no flag ${unknown}`
}

function session(): CliSession {
  const sink = { isTTY: false, hasColors: false, write: async () => {} }
  const stdin = { isTTY: false, bytes: async () => new Uint8Array(), stream: () => new Blob().stream() }
  return newSession({ env: {}, inherited: {}, cwd: '/', stdin, stdout: sink, stderr: sink }, CATALOG)
}
