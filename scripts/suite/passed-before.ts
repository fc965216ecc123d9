import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from './programs.ts'

/**
 * Test files that take long and depend on little of the code, each with all of the repository that it depends on. Outside
 * of CI they run only if something of that has changed since they passed.
 */
const SLOW: Readonly<Record<string, readonly string[]>> = {
  'test/corpus/corpus.test.ts': ['src/compute', 'src/hosting', 'test/corpus'],
  'test/resources/projects/large-frameworks.test.ts': [
    'bun.lock',
    'fixtures/projects',
    'src/compute',
    'src/hosting',
    'test/resources/projects',
  ],
}

const memory = join(root, 'dist/tests/passed.json')

/** Reports whether a test file passed with all that it depends on as it is now. */
export const passedBefore = (file: string): boolean => file in SLOW && read()[file] === digestOf(file)

/** Remembers of the slow ones among test files that they passed. */
export function rememberPassed(files: readonly string[]): void {
  const passed = files.filter((file) => file in SLOW).map((file) => [file, digestOf(file)])
  if (passed.length === 0) return
  mkdirSync(dirname(memory), { recursive: true })
  writeFileSync(memory, JSON.stringify({ ...read(), ...Object.fromEntries(passed) }))
}

function read(): Record<string, string> {
  return existsSync(memory) ? JSON.parse(readFileSync(memory, 'utf8')) : {}
}

function digestOf(file: string): string {
  const hash = new Bun.CryptoHasher('sha256')
  for (const path of (SLOW[file] ?? []).flatMap(filesBelow))
    hash.update(`${path}\0`).update(readFileSync(path))
  return hash.digest('hex')
}

function filesBelow(path: string): string[] {
  const whole = join(root, path)
  if (!statSync(whole).isDirectory()) return [whole]
  return readdirSync(whole, { recursive: true, encoding: 'utf8' })
    .map((name) => join(whole, name))
    .filter((one) => statSync(one).isFile())
    .sort()
}
