import { type Workspace, WorkspaceError } from '../../../compute/workspace.ts'

/** Returns the file name to try at an attempt, counted from 1. */
const nameOf = (attempt: number): string => (attempt === 1 ? 'PLAN.md' : `PLAN-${attempt}.md`)

const PLAN_NAME = /^PLAN(?:-\d+)?\.md$/

/** The last line of a plan: the build's id and a hash of the text above. */
const SEAL = /\n<!-- berth wrote this for (bld_\w+); ([0-9a-f]{16}) -->\n$/

/** Most bytes of a plan that is read. Berth writes no larger one. @bound peer */
const MAX_BYTES = 1024 * 1024

/**
 * The file of a build's plan in the workspace: `PLAN.md`. Replaces an unmodified plan of an earlier build. If another
 * file has the name, takes the next free one, for example `PLAN-2.md`.
 */
export class PlanFile {
  readonly path: string
  readonly #workspace: Workspace
  readonly #buildId: string
  /** The text as last written. */
  #writtenText: string | null = null
  /** The outcome in that text. */
  #outcome = ''
  /** The text as edited by others, without the outcome. */
  #editedText: string | null = null

  /** Chooses the name of a build's plan. Writes nothing. */
  static async create(workspace: Workspace, buildId: string): Promise<PlanFile> {
    for (let attempt = 1; ; attempt += 1) {
      const path = nameOf(attempt)
      if ((await exists(workspace, path)) && !(await isUnmodifiedPlan(workspace, path))) continue
      return new PlanFile(workspace, path, buildId)
    }
  }

  private constructor(workspace: Workspace, path: string, buildId: string) {
    this.#workspace = workspace
    this.path = path
    this.#buildId = buildId
  }

  /**
   * Writes or replaces the plan. If others have edited the file since the last write, as an agent may, keeps their text
   * and appends only `outcome`.
   *
   * @param outcome the whole outcome so far
   */
  async write(text: string, outcome: string): Promise<void> {
    const current = this.#writtenText === null ? null : await readText(this.#workspace, this.path)
    if (current === null) this.#editedText = null
    else if (current !== this.#writtenText)
      this.#editedText = withoutSuffix(current.replace(SEAL, '\n').trimEnd(), this.#outcome)
    if (this.#editedText !== null && outcome === '') return
    const body = this.#editedText === null ? text : `${this.#editedText}\n\n${outcome}`
    const sealed = `${body.trimEnd()}\n\n`
    this.#outcome = outcome
    this.#writtenText = `${sealed}${sealOf(sealed, this.#buildId)}`
    await this.#workspace.write(this.path, new TextEncoder().encode(this.#writtenText))
  }
}

/** Removes a suffix and the white space before it. */
const withoutSuffix = (text: string, suffix: string): string =>
  suffix !== '' && text.endsWith(suffix.trimEnd()) ? text.slice(0, -suffix.trimEnd().length).trimEnd() : text

/** Reports whether a path is a plan that berth wrote and nobody has edited. */
export async function isUnmodifiedPlan(workspace: Workspace, path: string): Promise<boolean> {
  if (!PLAN_NAME.test(path)) return false
  const text = await readText(workspace, path)
  const [seal, buildId] = SEAL.exec(text ?? '') ?? []
  if (text === null || seal === undefined || buildId === undefined) return false
  const body = text.slice(0, text.length - seal.length + 1)
  return `${body}${sealOf(body, buildId)}` === text
}

/** Returns the seal for a text that ends with an empty line. */
function sealOf(text: string, buildId: string): string {
  const fingerprint = new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 16)
  return `<!-- berth wrote this for ${buildId}; ${fingerprint} -->\n`
}

async function exists(workspace: Workspace, path: string): Promise<boolean> {
  return (await workspace.entries('/workspace/')).some(({ name }) => name === path)
}

/** Returns a file's text; null if it is not a file or is too large. */
async function readText(workspace: Workspace, path: string): Promise<string | null> {
  try {
    return new TextDecoder().decode(await workspace.read(path, MAX_BYTES))
  } catch (error) {
    if (error instanceof WorkspaceError) return null
    throw error
  }
}
