import { posix } from 'node:path'
import { fieldsOf } from '../../../runtime/is-object.ts'
import { shellQuote } from '../../../runtime/shell-quote.ts'
import { type Candidate, type Provider, startCommand } from '../candidate.ts'
import { embedsOf, findPrograms, type GoEmbed, type GoProgram, isAside, listensIn } from '../go/programs.ts'
import type { Machine } from '../machine.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion, atLeast, needsOf, readPin, type ToolNeed } from '../versions.ts'

/** Most programs that are built and named. @bound peer */
const MAX_PROGRAMS = 20

/** Go: the programs of a module, of which one that listens is the app. */
export const go: Provider = {
  name: 'go',
  marks: /^(?:go\.mod|main\.go)$/,
  async look(directory, machine) {
    const module = await directory.text('go.mod')
    if (module === null) return looseFile(directory, machine)
    const name = /^module[ \t]+["`]?([^\s"`]+)/m.exec(module)?.[1] ?? 'main'
    const programs = await findPrograms(directory, name)
    const tools = await toolsOf(directory, module, machine)
    const [likeliest] = programs
    const base = { tools, path: ['bin'], runs: runsOf(programs) }
    const evidence = [await directory.evidence('go.mod', /^module\b/)]
    if (likeliest === undefined) {
      const obstacle = 'There is a go.mod, but no directory with "package main" that would be a program.'
      return [{ ...base, kind: 'Go', strength: 'none', obstacle, evidence }]
    }
    const listening = programs.filter((one) => one.listening !== null && !isAside(one))
    const apps = listening.length > 0 ? listening : [likeliest]
    const build = buildOf([...apps, ...programs.filter((one) => !isAside(one))])
    const candidates: Candidate[] = []
    for (const app of apps.slice(0, MAX_PROGRAMS)) {
      const { embeds, warnings } = await partsOf(app, directory, machine)
      candidates.push({
        ...base,
        ...{ build, embeds },
        kind: app.framework === null ? 'Go' : `Go (${app.framework})`,
        warnings: [
          ...warnings,
          ...missingReplacements(directory, module),
          ...(app.listening === null && programs.length > 1 ? [unsureOf(app, programs)] : []),
        ],
        strength: app.listening === null ? 'weak' : 'proven',
        start: startCommand(startOf(app, await opensBeside(app, directory))),
        evidence: [
          ...evidence,
          app.listening === null
            ? await directory.evidence(app.main.path, /^func main\(/)
            : await directory.evidence(app.listening.path, listensIn(app)),
        ],
      })
    }
    return candidates
  },
}

/** Returns the command that starts a program. @param isBeside whether it has to run in its own directory */
function startOf({ name, words, directory }: GoProgram, isBeside: boolean): string {
  const options = words.map((word) => (word.includes('$') ? word : shellQuote([word])))
  if (!isBeside) return [shellQuote([`./bin/${name}`]), ...options].join(' ')
  const program = `${posix.relative(directory, '')}/bin/${name}`
  return [`cd ${shellQuote([directory])} && exec`, shellQuote([program]), ...options].join(' ')
}

/** Matches a relative path that code opens, as a file, a directory or a pattern. */
const OPENS =
  /\b(?:ParseFiles|ParseGlob|LoadHTMLGlob|LoadHTMLFiles|ReadFile|os\.Open|http\.Dir|os\.DirFS)\(\s*["`](?:\.\/)?([^"`/.*][^"`*]*)/g

/** Reports whether a program opens files that are in its own directory, and not in that of the module. */
async function opensBeside(
  { directory: own, files }: GoProgram,
  directory: SourceDirectory,
): Promise<boolean> {
  if (own === '') return false
  const has = (path: string) => directory.files.some((one) => one === path || one.startsWith(path))
  for (const { path } of files.filter((file) => posix.dirname(file.path) === own))
    for (const [, opened = ''] of (await directory.code(path)).matchAll(OPENS))
      if (has(`${own}/${opened}`) && !has(opened)) return true
  return false
}

/** Builds programs by their names, into `bin/`, as Heroku's Procfiles expect them. Of two of a name, the first. */
function buildOf(programs: readonly GoProgram[]): string {
  const byName = new Map<string, string>()
  for (const { name, directory } of programs.slice(0, MAX_PROGRAMS)) {
    if (!byName.has(name)) byName.set(name, directory === '' ? '.' : `./${directory}`)
  }
  return `go build -o bin/ ${shellQuote([...byName.values()])}`
}

const runsOf = (programs: readonly GoProgram[]): RegExp =>
  new RegExp(
    `(?:^|[\\s/;&])(?:go|bin/[\\w.-]+${programs.map(({ name }) => `|${name.replace(/[^\w-]/g, '\\$&')}`).join('')})(?:\\s|$)`,
  )

const unsureOf = (app: GoProgram, programs: readonly GoProgram[]): string => {
  const names = programs.slice(0, MAX_PROGRAMS).map((one) => one.directory || '.')
  return `None of the programs in ${names.join(', ')} is known to listen; ${app.directory || '.'} was taken. berth.json chooses another: {"start": "./bin/NAME"}`
}

/** Returns the versions that go.mod, go.work and version managers ask for. Newer ones than a module asks for are fine. */
async function toolsOf(directory: SourceDirectory, module: string, machine: Machine): Promise<ToolNeed[]> {
  // Go fetches a version itself unless a variable forbids it. Before 1.21 it knows no such variable, and fails at a version with
  // three numbers; others it tries.
  const setting = await machine.check('go', ['env', 'GOTOOLCHAIN'])
  const fetches = setting.works ? setting.output?.trim() : undefined
  const wishes: ToolNeed[] = []
  const add = (text: string, file: string): void => {
    const least = /^go[ \t]+(\d[\w.]*)/m.exec(text)?.[1]
    const isStrict = fetches === 'local' || (fetches === '' && /^\d+\.\d+\.\d/.test(least ?? ''))
    if (least !== undefined) wishes.push(atLeast('go', least, file, isStrict))
    const likely = /^toolchain[ \t]+go(\d[\w.]*)/m.exec(text)?.[1]
    if (likely !== undefined) wishes.push(atLeast('go', likely, file, false))
  }
  add(module, directory.pathOf('go.mod'))
  for (const at of [directory, ...directory.above]) add(await at.textOf('go.work'), at.pathOf('go.work'))
  const pin = await readPin(directory, 'go')
  return needsOf('go', [...wishes, pin && atLeast('go', pin.wanted, pin.wantedBy, false)])
}

/** Returns the directories whose output a program takes in, and what cannot be made. */
async function partsOf(
  app: GoProgram,
  directory: SourceDirectory,
  machine: Machine,
): Promise<{ embeds: string[]; warnings: string[] }> {
  const embeds = new Set<string>()
  const warnings = app.missing.map(
    ({ file, path }) =>
      `${file} imports ${path}, which is not in the source. berth does not run "go generate"; put what makes it into berth.json: {"build": "COMMAND && ${buildOf([app])}"}`,
  )
  for (const embed of embedsOf(app, directory)) {
    const made = await makerOf(embed, directory)
    if (made !== null && made.script === 'build') embeds.add(posix.join(directory.path, made.directory))
    else if (made !== null)
      warnings.push(
        `${embed.file} embeds ${embed.pattern}, which the script "${made.script}" of ${made.directory}/package.json makes. Put it into berth.json: {"build": "(cd ${made.directory} && npm ci && npm run ${made.script}) && ${buildOf([app])}"}`,
      )
    else if (!embed.isThere)
      warnings.push(
        `${embed.file} embeds ${embed.pattern}, and the source has no such file. Put what makes it into berth.json: {"build": "COMMAND && ${buildOf([app])}"}`,
      )
  }
  const usesC = app.files.some(({ imports }) =>
    imports.some((path) => path === 'C' || path === 'github.com/mattn/go-sqlite3'),
  )
  if (usesC && !(await machine.has('gcc')))
    warnings.push(
      'This program has parts in C (cgo), and there is no gcc. Install it with your package manager (Debian and Ubuntu: apt install gcc), and restart berth and the project.',
    )
  return { embeds: [...embeds], warnings }
}

/** Matches directories that only a build writes. */
const OUTPUT = /(?:^|\/)(?:dist|build|out|_site|browser|\.output)$/

/** Returns the package whose script makes what is embedded; null if it is written by hand, or nothing says what makes it. */
async function makerOf(
  { directory: output, isThere }: GoEmbed,
  directory: SourceDirectory,
): Promise<{ directory: string; script: string } | null> {
  if (isThere && !OUTPUT.test(output)) return null
  for (const path of directory.files.filter((file) => /^[^/].*\/package\.json$/.test(file))) {
    const at = posix.dirname(path)
    if (at.includes('node_modules')) continue
    const { scripts } = fieldsOf(await directory.tables(path))
    // Its own directory, or where its tool writes.
    const isOwn = output === at || output.startsWith(`${at}/`)
    const relative = posix.relative(at, output)
    const config = directory.first(
      ['vite.config.ts', 'vite.config.js', 'vite.config.mts', 'vite.config.mjs'].map(
        (name) => `${at}/${name}`,
      ),
    )
    const writes = /\boutDir:[^'"`\n]*['"`]([^'"`]+)['"`]/.exec(
      config === null ? '' : await directory.code(config),
    )?.[1]
    const all = Object.entries(fieldsOf(scripts))
    const named = all.find(([, command]) => String(command).includes(relative))?.[0]
    if (!isOwn && named !== undefined) return { directory: at, script: named }
    const isWritten = writes !== undefined && posix.join(at, writes) === output
    if ((isOwn || isWritten) && all.some(([name]) => name === 'build'))
      return { directory: at, script: 'build' }
  }
  return null
}

/** Returns sentences about modules that go.mod takes from directories which are not in the source. */
function missingReplacements(directory: SourceDirectory, module: string): string[] {
  const paths = [...module.matchAll(/=>[ \t]*(\.{1,2}\/\S+)/g)].map(([, path = '']) => path)
  return paths.flatMap((path) => {
    const whole = directory.pathOf(path)
    if (directory.source.directories.has(whole === '.' ? '' : whole)) return []
    return [`go.mod takes a module from ${path}, which is not in the source, so Go cannot build it.`]
  })
}

/** A program of one directory without a module. */
async function looseFile(directory: SourceDirectory, machine: Machine): Promise<Candidate[]> {
  if (directory.above.some((above) => above.has('go.mod'))) return []
  const app = (await findPrograms(directory, 'app')).find((one) => one.directory === '')
  if (app === undefined) return []
  const files = directory.files.filter((path) => app.files.some((file) => file.path === path))
  const { warnings } = await partsOf(app, directory, machine)
  return [
    {
      kind: app.framework === null ? 'Go' : `Go (${app.framework})`,
      strength: app.listening === null ? 'weak' : 'proven',
      build: `mkdir -p bin && go build -o bin/app ${shellQuote(files)}`,
      start: startCommand(startOf(app, false)),
      path: ['bin'],
      tools: [anyVersion('go')],
      evidence: [await directory.evidence((app.listening ?? app.main).path, listensIn(app))],
      runs: runsOf([app]),
      warnings,
    },
  ]
}
