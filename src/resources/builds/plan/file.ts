import { type Workspace, WorkspaceError } from '../../../compute/workspace.ts'

/** Names that a plan may have, in the order in which they are tried. */
const nameOf = (attempt: number): string => (attempt === 1 ? 'PLAN.md' : `PLAN-${attempt}.md`)

const PLAN_NAME = /^PLAN(?:-\d+)?\.md$/

/** The last line of a plan: whose it is, and a fingerprint of all that stands above. */
const SEAL = /\n<!-- berth wrote this for (bld_\w+); ([0-9a-f]{16}) -->\n$/

/** Largest plan that is looked at, bytes: what is larger berth did not write. */
const MOST_BYTES = 1024 * 1024

/**
 * The plan of a build in the workspace, `PLAN.md`. One of an earlier build gives way as long as it is as berth left
 * it; where anything else has the name, that stays and the plan takes the next one.
 */
export class PlanFile {
  readonly path: string
  readonly #workspace: Workspace
  readonly #buildId: string
  /** As it was left. */
  #last: string | null = null
  /** The news in it. */
  #news = ''
  /** What somebody else has made of it, without the news. */
  #theirs: string | null = null

  /** Finds a name for the plan of a build. Nothing is written yet. */
  static async choose(workspace: Workspace, buildId: string): Promise<PlanFile> {
    for (let attempt = 1; ; attempt += 1) {
      const path = nameOf(attempt)
      if ((await stands(workspace, path)) && !(await isUntouchedPlan(workspace, path))) continue
      return new PlanFile(workspace, path, buildId)
    }
  }

  private constructor(workspace: Workspace, path: string, buildId: string) {
    this.#workspace = workspace
    this.path = path
    this.#buildId = buildId
  }

  /**
   * Writes it, or puts it in the place of what was written before. Where somebody has changed that since, as an agent
   * may that follows the plan, what they have made of it stays from then on, and only `news` stands at its end.
   *
   * @param news all that has come of it so far
   */
  async write(text: string, news: string): Promise<void> {
    const now = this.#last === null ? null : await textOf(this.#workspace, this.path)
    if (now === null) this.#theirs = null
    else if (now !== this.#last) this.#theirs = without(now.replace(SEAL, '\n').trimEnd(), this.#news)
    if (this.#theirs !== null && news === '') return
    const body = this.#theirs === null ? text : `${this.#theirs}\n\n${news}`
    const sealed = `${body.trimEnd()}\n\n`
    this.#news = news
    this.#last = `${sealed}${sealOf(sealed, this.#buildId)}`
    await this.#workspace.write(this.path, new TextEncoder().encode(this.#last))
  }
}

/** A text without news that stand at its end. */
const without = (text: string, news: string): string =>
  news !== '' && text.endsWith(news.trimEnd()) ? text.slice(0, -news.trimEnd().length).trimEnd() : text

/** Whether a path is a plan that berth wrote and nobody has changed. */
export async function isUntouchedPlan(workspace: Workspace, path: string): Promise<boolean> {
  if (!PLAN_NAME.test(path)) return false
  const text = await textOf(workspace, path)
  const [seal, buildId] = SEAL.exec(text ?? '') ?? []
  if (text === null || seal === undefined || buildId === undefined) return false
  const body = text.slice(0, text.length - seal.length + 1)
  return `${body}${sealOf(body, buildId)}` === text
}

/** The seal of a text that ends with an empty line. */
function sealOf(text: string, buildId: string): string {
  const fingerprint = new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 16)
  return `<!-- berth wrote this for ${buildId}; ${fingerprint} -->\n`
}

async function stands(workspace: Workspace, path: string): Promise<boolean> {
  return (await workspace.entries('/workspace/')).some(({ name }) => name === path)
}

/** A file's text; null where it is none, or too large. */
async function textOf(workspace: Workspace, path: string): Promise<string | null> {
  try {
    const entry = await workspace.stat(path)
    if (entry?.kind !== 'file' || entry.size > MOST_BYTES) return null
    return new TextDecoder().decode(await workspace.read(path))
  } catch (error) {
    if (error instanceof WorkspaceError) return null
    throw error
  }
}
