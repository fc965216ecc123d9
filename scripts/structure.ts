/**
 * Prints figures about the structure of the code, each with its goal: what a reader has to learn. They are signs of where
 * a reader stumbles, not targets.
 *
 *     scripts/structure            the table
 *     scripts/structure --list     … and the files and names behind its rows
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { print, type Row } from './benchmarks/measure.ts'
import { importsOf, sourceFiles } from './import-graph.ts'

const root = join(import.meta.dir, '..')
const src = join(root, 'src')

/** Lines and files of `src` (without template apps and clients) and lines of `scripts` (without packaging) at commit 5753b4ac. */
const BEFORE = { lines: 142_037, files: 1_254, scripts: 6_056 }

/** What no script can count, as last measured. */
const BY_HAND: readonly Row[] = [
  {
    what: '“where is X?”, ten questions of one newcomer, answered by another from the map, 2026-11-29',
    measured: '9',
    goal: '≥ 9',
    met: true,
  },
  { what: 'hops from the socket to a route, 2026-11-28', measured: '4', goal: '≤ 4', met: true },
  { what: "objects that hold a part of an app's state, 2026-11-28", measured: '2', goal: '1', met: false },
]

/** Why rows that miss their goal are better so, by the beginning of the row. */
const REASONS: Readonly<Record<string, string>> = {
  objects:
    'The API shows two facts at once, how far a bring-up is and what responds meanwhile: PHASES is stored, TRANSITIONS is in memory.',
  modules:
    'The gateway with its HTTP parser, health checks, logs, pages, files and records are all needed for one project; what is not loads on first use. Fewer modules would be longer files.',
  'lines of src':
    'Second implementations went. What is left is behaviour, which stays; fewer lines would be fewer frameworks, isolations or checks. The report of a run, names in the documents and upgrades have come since.',
  'lines of scripts': 'Releases, and tests of them, came after the goal was met.',
  'files of src':
    'Files that load on first use stay apart, and so do languages, commands and screens: each is a concept.',
}

/** How many files of a room others should import at most: its doors. */
const DOORS = { compute: 8, hosting: 5, agents: 3, signin: 4, testing: 5, storage: 5 }

const list = process.argv.includes('--list')
const files = sourceFiles(src)
const texts = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]))
const imports = importsOf(src, files).filter(({ to }) => texts.has(to))

const linesOf = (text: string): number => text.split('\n').length - 1
const linesOfFile = (file: string): number => linesOf(texts.get(file) ?? '')
const roomOf = (file: string): string => file.split('/')[0] ?? file
const directoryOf = (file: string): string => file.split('/').slice(0, -1).join('/')
const importers = Map.groupBy(imports, ({ to }) => to)
const usersOf = (file: string): string[] => [...new Set(importers.get(file)?.map(({ from }) => from))]

/** Files that are hardly more than a part of the only file that uses them. Tables and nouns are concepts of their own. */
const small = files.filter((file) => {
  const [user, ...others] = usersOf(file)
  const isPart = user !== undefined && others.length === 0 && directoryOf(user) === directoryOf(file)
  return isPart && linesOfFile(file) <= 60 && !/\/table\.tsx?$|^cli\/nouns\//.test(file)
})

/** The files of a room that files of other rooms import, without what `main.ts` starts. */
const doorsOf = (room: string): string[] =>
  files.filter(
    (file) =>
      roomOf(file) === room &&
      usersOf(file).some((user) => roomOf(user) !== room && roomOf(user) !== 'main.ts'),
  )

/** Returns what is loaded with files at once, and not on first use. */
function loadedWith(entries: readonly string[]): Set<string> {
  const loaded = new Set(entries)
  for (const file of loaded)
    for (const { from, to, typeOnly, lazy } of imports)
      if (from === file && !typeOnly && !lazy) loaded.add(to)
  return loaded
}

const running = loadedWith(['cli/index.ts', 'cli/commands/serve.ts', 'instance/start.ts'])
const forProject = [...loadedWith(['resources/projects/service.ts', 'hosting/hosting.ts'])].filter(
  (file) => !running.has(file),
)

const definitions = [...texts].flatMap(([file, text]) =>
  [
    ...text.matchAll(
      /^export (?:declare )?(?:async |abstract )*(?:function\*?|const|class|interface|type|enum) (\w+)/gm,
    ),
  ].map(([, name = '']) => ({ name, file })),
)
const twice = [...Map.groupBy(definitions, ({ name }) => name)]
  .map(([name, places]) => ({ name, files: [...new Set(places.map(({ file }) => file))] }))
  .filter(({ files }) => files.length > 1)

const scriptLines = readdirSync(join(root, 'scripts'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !entry.parentPath.includes('/packaging'))
  .reduce((sum, entry) => sum + linesOf(readFileSync(join(entry.parentPath, entry.name), 'utf8')), 0)
const lines = files.reduce((sum, file) => sum + linesOfFile(file), 0)

const atMost = (what: string, measured: number, goal: number, before?: number): Row => ({
  what,
  measured: measured.toLocaleString('en'),
  ...(before !== undefined && { baseline: before.toLocaleString('en') }),
  goal: `≤ ${goal.toLocaleString('en')}`,
  met: measured <= goal,
})

const rows: Row[] = [
  ...BY_HAND,
  atMost('modules loaded to bring one project up, beyond those of a start', forProject.length, 60),
  atMost('files of at most 60 lines beside their only user', small.length, 15),
  ...Object.entries(DOORS).map(([room, goal]) =>
    atMost(`files of ${room} that other rooms import`, doorsOf(room).length, goal),
  ),
  atMost('exported names that exist more than once', twice.length, 40),
  atMost('lines of src, without templates and clients', lines, BEFORE.lines - 20_000, BEFORE.lines),
  atMost('files of src, without templates and clients', files.length, 800, BEFORE.files),
  atMost('lines of scripts, without packaging', scriptLines, 3_000, BEFORE.scripts),
]
print('Structure', rows)
console.log()
for (const { what, met } of rows) {
  const [, reason] = Object.entries(REASONS).find(([begin]) => what.startsWith(begin)) ?? []
  if (met === false) console.log(`${what}: ${reason ?? 'nobody has said why.'}`)
}

if (list) {
  console.log('\nFiles beside their only user:')
  for (const file of small) console.log(`  ${linesOfFile(file)}\t${file} ← ${usersOf(file)}`)
  for (const room of Object.keys(DOORS)) {
    console.log(`\nFiles of ${room} that other rooms import:`)
    for (const file of doorsOf(room))
      console.log(`  ${file} ← ${usersOf(file).filter((user) => roomOf(user) !== room).length}`)
  }
  console.log('\nExported names that exist more than once:')
  for (const { name, files } of twice) console.log(`  ${name}: ${files.join(', ')}`)
}
