import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TEST_PATH } from '../bench.ts'

/** Programs that take the place of the machine's. */
export class Programs implements Disposable {
  readonly #dir = mkdtempSync(join(tmpdir(), 'berth-programs-'))

  /** @param programs the text of each, by its name */
  constructor(programs: Record<string, string>) {
    chmodSync(this.#dir, 0o755)
    for (const [name, text] of Object.entries(programs)) {
      writeFileSync(join(this.#dir, name), text, { mode: 0o755 })
    }
  }

  get path(): string {
    return `${this.#dir}:${TEST_PATH}`
  }

  [Symbol.dispose](): void {
    rmSync(this.#dir, { recursive: true })
  }
}
