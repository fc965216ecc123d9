/**
 * Generates the low level of the clients from the OpenAPI document of this source, and builds their packages. No instance has to
 * run. What a language needs is fetched into node_modules/.cache; a language whose tools are missing is skipped with a reason.
 *
 *     scripts/clients                 all languages, into dist/clients
 *     scripts/clients typescript      some
 *     scripts/clients --generate …    only what is generated, into src/clients, for an editor
 */
import { Database } from 'bun:sqlite'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { version } from '../../package.json'
import { describeAll } from '../../src/instance/describe.ts'
import { go } from './clients/go.ts'
import { type ClientLanguage, Missing } from './clients/language.ts'
import { python } from './clients/python.ts'
import { typescript } from './clients/typescript.ts'
import { withOwner } from './owner.ts'

const LANGUAGES: readonly ClientLanguage[] = [typescript, python, go]

const root = join(import.meta.dir, '../..')
const output = join(root, 'dist/clients')

const given = process.argv.slice(2)
const generateOnly = given.includes('--generate')
const names = given.filter((name) => name !== '--generate')
const unknown = names.filter((name) => !LANGUAGES.some((language) => language.name === name))
if (unknown.length > 0) {
  const known = LANGUAGES.map(({ name }) => name).join(', ')
  console.error(`${unknown.join(', ')}: no client in this language. There are ${known}.`)
  process.exit(2)
}

mkdirSync(output, { recursive: true })
// Another run waits until this one has ended, however it ends, and then finds what is built.
const lock = new Database(join(output, 'lock.db'))
lock.exec('PRAGMA busy_timeout = 600000; BEGIN EXCLUSIVE')

const document = join(output, 'openapi.json')
writeFileSync(document, JSON.stringify(await describeAll(), null, 2))

/** Directories beside the source of a client that are no part of it. */
const APART = /\/(?:node_modules|__pycache__|\.venv)(?:\/|$)/

let failed = false
for (const language of LANGUAGES) {
  if (names.length > 0 && !names.includes(language.name)) continue
  const started = performance.now()
  const source = join(root, 'src/clients', language.name)
  const cache = join(root, 'node_modules/.cache/clients', language.name)
  mkdirSync(cache, { recursive: true })
  try {
    const key = join(output, `${language.name}.key`)
    const inputs = inputsOf(source)
    if (!generateOnly && existsSync(key) && readFileSync(key, 'utf8') === inputs) {
      console.error(`The client for ${language.title} is built already.`)
      continue
    }
    await language.generate({ document, source, cache })
    if (!generateOnly) {
      rmSync(key, { force: true })
      const work = join(cache, 'package')
      copySource(source, work)
      for (const directory of language.outputs) {
        rmSync(join(output, directory), { recursive: true, force: true })
        mkdirSync(join(output, directory), { recursive: true })
      }
      await language.build({ source: work, cache, output, version })
      writeFileSync(key, inputsOf(source))
    }
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    console.error(`${generateOnly ? 'Generated' : 'Built'} the client for ${language.title} in ${seconds} s.`)
  } catch (error) {
    if (error instanceof Missing) console.error(`SKIP: the client for ${language.title}: ${error.message}`)
    else {
      failed = true
      console.error(
        `The client for ${language.title} could not be built: ${error instanceof Error ? error.message : error}`,
      )
    }
  }
}
process.exit(failed ? 1 : 0)

/** A hash of all that a package is made from: the document, the source with what is generated, and these scripts. */
function inputsOf(source: string): string {
  const hash = new Bun.CryptoHasher('sha256').update(readFileSync(document)).update(version)
  for (const directory of [source, import.meta.dir])
    for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()) {
      const file = join(directory, path)
      if (APART.test(`/${path}`) || !statSync(file).isFile()) continue
      hash.update(path).update(readFileSync(file))
    }
  return hash.digest('hex')
}

/** Copies the source of a client with what is generated, and with the owner's name in place of the placeholder. */
function copySource(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  cpSync(from, to, {
    recursive: true,
    filter: (path) => !APART.test(path),
  })
  cpSync(join(root, 'LICENSE'), join(to, 'LICENSE'))
  for (const entry of readdirSync(to, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const text = readFileSync(path, 'utf8')
    const changed = withOwner(text)
    if (changed !== text) writeFileSync(path, changed)
  }
}
