/**
 * Run as a process of its own by workspace-race.test.ts: swaps a folder, and a file, of the workspace for links that
 * lead out, as fast as it can. Prints `ready`, then, when standard input closes, how often it swapped.
 */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [root = '', outside = ''] = process.argv.slice(2)
const at = (name: string) => join(root, name)
let swaps = 0
let ending = false

function setUp(): void {
  for (const name of ['d', 'd.folder', 'd.link', 'f', 'f.file', 'f.link'])
    rmSync(at(name), { recursive: true, force: true })
  mkdirSync(at('d.folder'))
  writeFileSync(at('d.folder/f'), 'inside')
  symlinkSync(outside, at('d.link'))
  writeFileSync(at('f.file'), 'inside')
  symlinkSync(join(outside, 'f'), at('f.link'))
}

function swap(): void {
  for (const [name, kept] of [
    ['d', 'd.folder'],
    ['d', 'd.link'],
    ['f', 'f.file'],
    ['f', 'f.link'],
  ] as const) {
    renameSync(at(kept), at(name))
    renameSync(at(name), at(kept))
    swaps += 1
  }
}

setUp()
console.log('ready')
process.stdin.on('end', () => {
  ending = true
})
process.stdin.resume()
while (!ending) {
  try {
    for (let n = 0; n < 50; n += 1) swap()
  } catch {
    // The other side removed or wrote something in between.
    try {
      setUp()
    } catch {}
  }
  await new Promise((resolve) => setImmediate(resolve))
}
console.log(swaps)
