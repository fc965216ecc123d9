import type { CommandTemplate, Template } from './template.ts'

/** What the scripted agent does for goals that match. */
export interface Scenario {
  /** Its name in a transcript. */
  readonly title: string
  readonly matcher: Matcher
  /** At least one; one that ends the work is the last. */
  readonly steps: readonly Step[]
}

/** Decides whether a scenario is for a goal. */
export interface Matcher {
  /** The values that steps may use besides those of earlier steps. */
  readonly names: readonly string[]
  /** Returns the values of a goal that matches, else null. */
  match(goal: string): ReadonlyMap<string, string> | null
}

/** One thing to do. */
export type Step =
  | {
      readonly does: 'run'
      readonly command: CommandTemplate
      /** Directory to run it in, relative to the workspace; empty for the workspace. */
      readonly cwd: string
      /** Milliseconds that it may take; null for the workbench's own limit. */
      readonly timeoutMs: number | null
      /** The exit code that counts as a success. */
      readonly expect: number | 'any'
      /** The name that its output gets for later steps. */
      readonly as: string | null
    }
  | { readonly does: 'write'; readonly path: Template; readonly content: Template }
  | { readonly does: 'read'; readonly path: Template; readonly as: string | null }
  | { readonly does: 'ask'; readonly question: Template; readonly as: string }
  | { readonly does: 'say'; readonly text: Template }
  | { readonly does: 'wait'; readonly ms: number }
  | { readonly does: 'hold' }
  | { readonly does: 'complete'; readonly text: Template }
  | { readonly does: 'fail'; readonly text: Template }
