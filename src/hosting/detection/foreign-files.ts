import type { Evidence } from '../app-runtime/plan.ts'
import type { SourceDirectory } from './source.ts'

/** What files say that others' tools read, and berth does not run. */
export interface Foreign {
  readonly evidence: readonly Evidence[]
  /** One sentence for an app whose start nothing else says; null if these files say nothing of it. */
  readonly says: string | null
  /** A `berth.json` of what they say; null without a start. */
  readonly berthJson: Readonly<Record<string, unknown>> | null
  readonly warnings: readonly string[]
}

/** Reads the files of a directory that name a start, a build or a port for others' tools. */
export async function readForeign(directory: SourceDirectory): Promise<Foreign> {
  const evidence = directory.has('Dockerfile')
    ? [await directory.evidence('Dockerfile', /^\s*(?:CMD|ENTRYPOINT)\b/i)]
    : []
  const start = evidence[0]?.line ? dockerCommand(evidence[0].says) : null
  if (start === null) return { evidence, says: null, berthJson: null, warnings: [] }
  return {
    evidence,
    says: `There is a Dockerfile, but berth runs no containers; its command is \`${start}\`.`,
    berthJson: { start },
    warnings: [],
  }
}

/** Returns the shell command of a `CMD` or `ENTRYPOINT`. */
function dockerCommand(line: string): string | null {
  const rest = line.replace(/^\s*(?:CMD|ENTRYPOINT)\s+/i, '')
  try {
    const words: unknown = JSON.parse(rest)
    return Array.isArray(words) ? words.join(' ') : rest
  } catch {
    return rest === '' ? null : rest
  }
}
