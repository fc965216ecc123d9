import type { Template } from './template.ts'

/** The steps of the scripted agent for matching goals. */
export interface Scenario {
  /** Its name in a transcript. */
  readonly title: string
  readonly matcher: GoalMatcher
  /** At least one. Only the last may end the work. */
  readonly steps: readonly ScenarioStep[]
}

/** Decides whether a goal matches. */
export interface GoalMatcher {
  /** The values that steps may use besides those of earlier steps. */
  readonly names: readonly string[]
  /** The only account whose goals match; null for all. */
  readonly accountId: string | null
  /** Returns the values of a goal that matches, else null. The account is not looked at. */
  match(goal: string): ReadonlyMap<string, string> | null
}

/** A step of a scenario. */
export type ScenarioStep =
  | {
      readonly kind: 'run'
      readonly command: Template
      /** Directory to run it in, relative to the workspace; empty for the workspace. */
      readonly cwd: string
      /** Milliseconds that it may take; null for the workbench's own limit. */
      readonly timeoutMs: number | null
      /** The exit code that counts as a success. */
      readonly expect: number | 'any'
      /** The name that its output gets for later steps. */
      readonly as: string | null
    }
  | { readonly kind: 'write'; readonly path: Template; readonly content: Template }
  | { readonly kind: 'read'; readonly path: Template; readonly as: string | null }
  | { readonly kind: 'ask'; readonly question: Template; readonly as: string }
  | { readonly kind: 'say'; readonly text: Template }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'hold' }
  | { readonly kind: 'complete'; readonly text: Template }
  | { readonly kind: 'fail'; readonly text: Template }
