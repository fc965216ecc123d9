import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OpenApiDocument, Schema } from '../../src/contract/openapi/model.ts'
import { describeAll } from '../../src/instance/describe.ts'
import { temporaryFolder } from '../cli/command.ts'
import { operationsOf } from '../support/openapi-rules.ts'

/*
 * A reader of the document that no client of berth is made with: openapi-generator, and the compiler of Java, which takes less than
 * those of other languages.
 */

/** What is fetched from Maven Central: the generator with all that its clients import, and the annotation that is on each class. */
const JARS = [
  {
    artifact: 'org.openapitools:openapi-generator-cli:7.25.0',
    sha256: '41ce4f6b07f196676439d710759fa1ced7a08066d06ff1bf314681470289efae',
  },
  {
    artifact: 'jakarta.annotation:jakarta.annotation-api:1.3.5',
    sha256: '85fb03fc054cdf4efca8efd9b6712bbb418e1ab98241c4539c8585bbc23e1b8a',
  },
]

/** What fetches a jar. */
const COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy'

/** Where jars are kept. */
const CACHE = join(import.meta.dir, '../../node_modules/.cache/java')

/** How long a program may take on a busy machine, with what Maven fetches, in milliseconds. */
const PATIENCE_MS = 300_000

/** For programs that end before an optimizing compiler has paid. */
const SHORT = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC']

/** Runs a program to its end. @returns what it printed @throws Error with it if the program failed */
async function run(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdio: ['ignore', 'pipe', 'pipe'] })
  const [out, error, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (exitCode !== 0)
    throw new Error(`${command.join(' ')} ended with ${exitCode}:\n${out}${error}`.slice(-20_000))
  return out + error
}

/** Returns where a jar is kept. */
const pathOf = (artifact: string): string => join(CACHE, `${artifact.split(':').slice(1).join('-')}.jar`)

/** Returns why the client cannot be generated and compiled here; null if it can. */
async function missing(): Promise<string | null> {
  for (const program of ['java', 'javac', 'mvn'])
    if (!Bun.which(program)) return `${program} is not installed.`
  mkdirSync(CACHE, { recursive: true })
  for (const { artifact } of JARS) {
    if (existsSync(pathOf(artifact))) continue
    const copy = ['mvn', '-B', '-q', COPY, `-Dartifact=${artifact}`, `-DoutputDirectory=${CACHE}`]
    const failure = await run(...copy).then(
      () => null,
      (error: Error) => error.message,
    )
    if (failure !== null) return `${artifact} cannot be fetched: ${failure.split('\n')[1]}`
  }
  return null
}

const reason = await missing()
if (reason !== null) console.error(`SKIP: a client for Java by openapi-generator: ${reason}`)

describe.skipIf(reason !== null)('a client for Java by openapi-generator', () => {
  const folder = temporaryFolder()
  const sources = join(folder.path, 'client/src/main/java')
  const classPath = JARS.map(({ artifact }) => pathOf(artifact)).join(':')
  let document: OpenApiDocument
  let files: string[] = []
  afterAll(() => folder[Symbol.dispose]())

  beforeAll(async () => {
    for (const { artifact, sha256 } of JARS) {
      const found = new Bun.CryptoHasher('sha256').update(readFileSync(pathOf(artifact))).digest('hex')
      if (found !== sha256)
        throw new Error(`${pathOf(artifact)} has the SHA-256 ${found}, not ${sha256}: remove it.`)
    }
    document = await describeAll()
    writeFileSync(join(folder.path, 'openapi.json'), JSON.stringify(document))
    await run(
      ...['java', ...SHORT, '-cp', classPath, 'org.openapitools.codegen.OpenAPIGenerator', 'generate'],
      ...['-g', 'java', '--library', 'native', '-i', join(folder.path, 'openapi.json')],
      ...['-o', join(folder.path, 'client'), '--additional-properties', 'openApiNullable=false'],
      // Forms with an archive have types only if it is told to make them.
      ...[
        '--global-property',
        'skipFormModel=false,apiTests=false,modelTests=false,apiDocs=false,modelDocs=false',
      ],
    )
    files = readdirSync(sources, { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('.java'),
    )
  }, PATIENCE_MS)

  test('has a method for every operation', () => {
    const apis = files.filter((path) => path.includes('/api/'))
    const text = apis.map((path) => readFileSync(join(sources, path), 'utf8')).join('\n')
    const methods = new Set([...text.matchAll(/^ {2}public \S+ (\w+)\(/gm)].map(([, name]) => name))
    const wanted = operationsOf(document).map(({ operationId }) =>
      operationId.replace(/\.(\w)/g, (_, letter: string) => letter.toUpperCase()),
    )
    expect(wanted.filter((name) => !methods.has(name))).toEqual([])
  })

  test('has a class for every schema, and none with a name that the generator made up', () => {
    const classes = files.flatMap((path) => /\/model\/(\w+)\.java$/.exec(path)?.[1] ?? [])
    const { schemas } = document.components
    // Of what can be anything, and of an object without fields of its own, there is no class.
    const isTyped = ({ properties, ...schema }: Schema) =>
      Object.keys((properties ?? {}) as object).length > 0 ||
      ['enum', 'anyOf', 'oneOf'].some((key) => key in schema)
    const wanted = Object.keys(schemas).filter((name) => isTyped(schemas[name] ?? {}))
    expect(classes.filter((name) => name !== 'AbstractOpenApiSchema' && !(name in schemas))).toEqual([])
    expect(wanted.filter((name) => !classes.includes(name))).toEqual([])
  })

  test(
    'compiles',
    async () => {
      const list = join(folder.path, 'files')
      writeFileSync(list, files.map((path) => join(sources, path)).join('\n'))
      const options = ['-proc:none', '-nowarn', '-cp', classPath, '-d', join(folder.path, 'classes')]
      await run('javac', ...SHORT.map((option) => `-J${option}`), ...options, `@${list}`)
    },
    PATIENCE_MS,
  )
})
