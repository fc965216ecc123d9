import { join } from 'node:path'
import { root } from './test-files.ts'

/** What runs the servers of tests of `test/e2e` once more, in place of this machine. */
export const ELSEWHERE = ['docker', 'kubernetes'] as const

/** An engine or a cluster that a process of its own has started for the tests. Disposing of it ends it. */
export class ProvidedCompute implements AsyncDisposable {
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>
  /** The variables by which tests find it; null if this machine cannot run it. */
  readonly variables: Readonly<Record<string, string>> | null
  /** Why this machine cannot run it, in a sentence. */
  readonly missing: string

  /**
   * Starts it, with the image of servers.
   *
   * @param executable absolute path of the executable of berth that the image has
   * @throws Error if it does not start
   */
  static async start(compute: (typeof ELSEWHERE)[number], executable: string): Promise<ProvidedCompute> {
    const child = Bun.spawn([process.execPath, join(root, 'test/support/provide.ts'), compute], {
      env: { ...process.env, BERTH_TEST_EXECUTABLE: executable },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of child.stdout) {
      text += decoder.decode(chunk, { stream: true })
      if (text.endsWith('\n')) return new ProvidedCompute(child, JSON.parse(text))
    }
    throw new Error(`${compute} was not started (exit code ${await child.exited})`)
  }

  private constructor(
    child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>,
    { variables, missing }: { variables?: Record<string, string>; missing?: string },
  ) {
    this.#child = child
    this.variables = variables ?? null
    this.missing = missing ?? ''
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stdin.end()
    await this.#child.exited
  }
}
