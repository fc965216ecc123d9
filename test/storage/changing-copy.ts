/** Run as an ordinary user: copies a tree in which others make and remove files; prints the errors that are not berth's own. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BerthError } from '../../src/errors.ts'
import { copyTrees } from '../../src/storage/files.ts'
import { amidChurn } from '../support/churn.ts'

const folder = mkdtempSync(join(tmpdir(), 'berth-changing-'))
const tree = join(folder, 'tree')
mkdirSync(tree)
writeFileSync(join(tree, 'closed'), '')
chmodSync(join(tree, 'closed'), 0o000)
const errors: unknown[] = []
const copy = async () => {
  const to = join(folder, 'copy')
  mkdirSync(to)
  await copyTrees([tree], to).catch((error: unknown) => {
    if (!(error instanceof BerthError)) errors.push(String(error))
  })
  rmSync(to, { recursive: true })
}
const inner = ['a/', 'a/b/', 'a/b/c', 'a/d/', 'e/', 'e/f/', 'g/', 'h']
const rounds = await amidChurn(join(tree, 'busy'), inner, copy, 2_000)
rmSync(folder, { recursive: true })
console.log(JSON.stringify({ copied: rounds > 0, errors }))
