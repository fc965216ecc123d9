import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** Writes a file in one step, with the directories above it: who watches them never finds it empty or half there. */
export function writeWhole(path: string, content: string | Uint8Array): void {
  const whole = join(tmpdir(), `berth-whole-${crypto.randomUUID()}`)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(whole, content)
  renameSync(whole, path)
}
