import type { Release } from './release.ts'

/** A way to get berth. */
interface Way {
  readonly name: string
  readonly systems: string
  /** What tests of this project did with it; null if none of them has run it. */
  readonly run: string | null
  /** What was checked where it was not run. */
  readonly checked?: string
}

const WAYS: readonly Way[] = [
  {
    name: 'archive',
    systems: 'Linux x64 (glibc)',
    run: 'unpacked and run on a system without Node.js or Bun',
  },
]

/** Returns the table of ways to get berth, in Markdown. */
export function waysTable(): string {
  const rows = WAYS.map(
    ({ name, systems, run, checked }) =>
      `| ${name} | ${systems} | ${run === null ? `**not run by us**${checked ? `; ${checked}` : ''}` : `run by us: ${run}`} |\n`,
  )
  return `| way | systems | |\n|---|---|---|\n${rows.join('')}`
}

/** Returns the commands by which a person publishes a release. */
export const publishCommands = (_release: Release): string => ''
