/**
 * Prints figures about the structure of `src`: how many rooms it has and how they depend on each other, circles, files
 * with one importer, lines. Each row has a goal. They are signs of where a reader stumbles, not targets.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { print, type Row } from './benchmarks/measure.ts'
import { circles, importsOf, sourceFiles } from './import-graph.ts'

const src = join(import.meta.dir, '../src')
const files = sourceFiles(src)
const imports = importsOf(src, files).filter(({ to }) => files.includes(to))
const texts = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]))

/** The room of a file: the directory of `src` that it lies in, or the file itself. */
const roomOf = (file: string): string => file.split('/')[0] ?? file

const rooms = new Set(files.map(roomOf))
const arrows = new Map<string, Set<string>>()
for (const { from, to } of imports) {
  const [a, b] = [roomOf(from), roomOf(to)]
  if (a !== b) arrows.set(a, (arrows.get(a) ?? new Set()).add(b))
}

/** The floor of a room: one above the highest room that it imports. Rooms that import each other share a floor. */
function floorOf(room: string, seen: readonly string[] = []): number {
  const below = [...(arrows.get(room) ?? [])].filter((other) => !seen.includes(other))
  return 1 + Math.max(0, ...below.map((other) => floorOf(other, [...seen, room])))
}

/** How often a pattern occurs in the files under a path. */
function count(pattern: RegExp, under = ''): number {
  let found = 0
  for (const [file, text] of texts) if (file.startsWith(under)) found += text.match(pattern)?.length ?? 0
  return found
}

const importers = new Map<string, Set<string>>()
for (const { from, to } of imports) importers.set(to, (importers.get(to) ?? new Set()).add(from))
const single = [...importers].filter(([, by]) => by.size === 1)
const linesOf = (file: string): number => texts.get(file)?.split('\n').length ?? 0
const directoryOf = (file: string): string => file.split('/').slice(0, -1).join('/')
/** Small files beside their only importer: concepts of their own, or halves of it. Readers look for tables and nouns. */
const smallBeside = single.filter(
  ([file, by]) =>
    linesOf(file) < 40 &&
    !/\/table\.ts$|^cli\/nouns\//.test(file) &&
    [...by].every((user) => directoryOf(user) === directoryOf(file)),
)

/** The words of each file's code and of the files that use `src` from outside. */
const wordsOf = (text: string): Set<string> =>
  new Set(text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '').match(/[\w$]+/g))
const words = [...texts].map(([file, text]) => ({ file, words: wordsOf(text) }))
for (const other of ['../test', '../scripts']) {
  const directory = join(src, other)
  for (const file of sourceFiles(directory))
    words.push({ file: join(other, file), words: wordsOf(readFileSync(join(directory, file), 'utf8')) })
}
const unused = [...texts].flatMap(([file, text]) =>
  [...text.matchAll(/^export (?:async |abstract )*(?:function|const|class|interface|type) (\w+)/gm)]
    .map(([, name = '']) => name)
    .filter((name) => !words.some((other) => other.file !== file && other.words.has(name)))
    .map((name) => `${file}: ${name}`),
)
const lines = [...texts.values()].reduce((sum, text) => sum + text.split('\n').length - 1, 0)
const longest = Math.max(...[...texts.values()].map((text) => text.split('\n').length - 1))
const arrowCount = [...arrows.values()].reduce((sum, to) => sum + to.size, 0)
const floors = Math.max(...[...rooms].map((room) => floorOf(room)))
const typeCircles = circles(imports)

const atMost = (what: string, measured: number, goal: number): Row => ({
  what,
  measured: measured.toLocaleString('en'),
  goal: `≤ ${goal.toLocaleString('en')}`,
  met: measured <= goal,
})

print('Structure of src', [
  atMost('rooms (directories and files of src itself)', rooms.size, 18),
  atMost('floors', floors, 12),
  atMost('arrows between rooms', arrowCount, 100),
  atMost('circles of imports, types included', typeCircles.length, 0),
  { what: 'files with exactly one importer', measured: String(single.length) },
  atMost(
    '… of fewer than 40 lines, beside it, neither a table nor a noun',
    smallBeside.length,
    Math.floor(files.length / 50),
  ),
  atMost(
    'responses typed by hand in the command line (`request<…>`)',
    count(/\brequest<(?!Answer)/g, 'cli/'),
    0,
  ),
  atMost('copies of the branch for --json', count(/if \((?:options\.|\w+\.)?json\)/g, 'cli/'), 1),
  atMost('`let` at the top of a module', count(/^(?:export )?let /gm), 0),
  atMost('exports that no other file names', unused.length, 0),
  atMost('lines of the longest file', longest, 600),
  { what: 'files', measured: String(files.length) },
  { what: 'lines', measured: lines.toLocaleString('en') },
])
for (const one of unused) console.log(`only its own file uses ${one}`)
for (const circle of typeCircles) console.log(`circle: ${circle.join(', ')}`)
if (process.argv.includes('--single')) {
  for (const [file, by] of single.sort()) {
    console.log(`${linesOf(file)}\t${file} ← ${[...by].join()}`)
  }
}
