import type { StartPlan } from '../app-runtime/plan.ts'
import { type Candidate, reaches, STRENGTHS } from './candidate.ts'
import type { ToolNeed } from './versions.ts'

/** A candidate, and the directory that it is of. */
export interface Placed extends Candidate {
  readonly install: string | null
  readonly build: string | null
  readonly start: StartPlan | null
  readonly tools: readonly ToolNeed[]
  /** Relative to the source; empty for the source itself. */
  readonly directory: string
  /** Relative to where `directory` is. */
  readonly embeds: readonly string[]
  /** Whether it is looked at only as a part, since its directory is not below the one that was named. */
  readonly isOutside?: boolean
}

/** What is run of a source's candidates. */
export interface Ranking {
  readonly app: Placed | null
  /** Built before it, in this order, since it takes in what they make. */
  readonly parts: readonly Placed[]
  /** Further apps, which are not run. */
  readonly others: readonly Placed[]
}

/** Directories of programs that are not what a repository is for. They are named, and taken only where there is nothing else. */
const ASIDE =
  /(?:^|\/)(?:\.\w[^/]*|_?examples?|samples?|demos?|docs?|documentation|website|tests?|__tests__|spec|e2e|fixtures|testdata|benchmarks?|scripts?|tools?|hack|contrib|third[_-]party|vendor)(?:\/|$)/i

/** Deepest directory that may come before a weak candidate of the source itself. */
const NEAR = 2

/**
 * Ranks candidates by strength, whatever their language: a strong one of the source itself, then a strong one of a
 * directory near it, then a weak one. Weaker candidates that are built in the same directory, and those that the app
 * takes in, are its parts.
 *
 * @param command the author's own start, as of a Procfile; it prefers the candidate whose tools it calls. Null for none
 */
export function rank(candidates: readonly Placed[], command: string | null): Ranking {
  const claimed = new Set(candidates.filter(({ claims }) => claims).map(({ directory }) => directory))
  const sorted = candidates
    .filter(({ directory, strength }) => !claimed.has(directory) || strength !== 'weak')
    .map((candidate, index) => ({ candidate, index }))
    .sort((a, b) => orderOf(a.candidate, command) - orderOf(b.candidate, command) || a.index - b.index)
    .map(({ candidate }) => candidate)
  // An author's command runs in the source's own directory.
  const own = sorted.filter(({ directory }) => directory === '')
  const mayBeApp = ({ start, directory, strength, isOutside = false }: Placed): boolean =>
    start !== null && !isOutside && (directory === '' || reaches(strength, 'pages'))
  const app = (command === null ? sorted.find(mayBeApp) : null) ?? own[0] ?? null
  if (app === null) return { app, parts: [], others: sorted }
  const rest = sorted.filter((candidate) => candidate !== app)
  const parts = rest.filter((candidate) => isPartOf(candidate, app))
  const beside = rest.filter(
    ({ directory, strength }) => directory === app.directory && reaches(strength, 'stated'),
  )
  const elsewhere = rest.filter(
    (candidate) =>
      candidate.directory !== app.directory &&
      candidate.start !== null &&
      !candidate.isOutside &&
      !parts.includes(candidate) &&
      // A page in a directory is an app only where there is nothing else.
      ((app.start === null && !ASIDE.test(candidate.directory)) || reaches(candidate.strength, 'pages')),
  )
  return { app, parts, others: [...beside, ...firstOfEach(elsewhere)] }
}

/** Smaller for what comes first. */
function orderOf(candidate: Placed, command: string | null): number {
  const { directory, strength, runs } = candidate
  const depth = directory === '' ? 0 : directory.split('/').length
  const weakness = STRENGTHS.length - 1 - STRENGTHS.indexOf(strength)
  const called = command !== null && runs?.test(command) ? 0 : 1
  const group =
    depth === 0 && reaches(strength, 'pages')
      ? 0
      : depth <= NEAR && reaches(strength, 'stated') && !ASIDE.test(directory)
        ? 1
        : depth === 0 && candidate.start !== null
          ? 2
          : ASIDE.test(directory)
            ? 4
            : 3
  return group * 10_000 + (depth === 0 ? called * 1000 : 0) + depth * 10 + weakness
}

/** Reports whether a candidate's build belongs to an app's. */
function isPartOf(candidate: Placed, app: Placed): boolean {
  if (candidate.build === null || candidate.standsAlone || app.isBuilt) return false
  if (app.embeds.includes(candidate.directory) && candidate.directory !== app.directory) return true
  const isWeaker = !reaches(candidate.strength, app.strength) || candidate.start === null
  return candidate.directory === app.directory && isWeaker && candidate.kind !== app.kind
}

/** Returns the first candidate of each directory. */
const firstOfEach = (candidates: readonly Placed[]): Placed[] =>
  [...Map.groupBy(candidates, ({ directory }) => directory).values()].flatMap(([first]) =>
    first ? [first] : [],
  )
