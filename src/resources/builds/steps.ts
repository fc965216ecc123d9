/** The phases of a build, in order. */
export const STEP_KEYS = ['plan', 'scaffold', 'implement', 'install', 'build', 'deploy'] as const

/** One of the phases. */
export type StepKey = (typeof STEP_KEYS)[number]

/** Descriptions of the steps for people. */
export const STEP_LABELS: Readonly<Record<StepKey, string>> = {
  plan: 'Plan the app',
  scaffold: 'Copy the template',
  implement: 'Implement the goal',
  install: 'Install packages',
  build: 'Build the app',
  deploy: 'Publish the app',
}
