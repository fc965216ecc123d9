import type { Target } from './targets.ts'

/** An executable of a release. */
export interface BuiltTarget {
  readonly target: Target
  readonly bytes: Uint8Array
  /** Where it is while the release is built. */
  readonly path: string
}

/** A release while it is built. */
export interface Release {
  readonly version: string
  /** The whole hash of the commit. */
  readonly commit: string
  /** Time of the commit since 1970: that of all files. */
  readonly seconds: number
  /** Whose names the packages have, in lower case. */
  readonly owner: string
  /** Where what is published goes. */
  readonly out: string
  /** A directory for what is needed in between. */
  readonly work: string
  readonly builds: readonly BuiltTarget[]
  /** The text of the licences of what the executables contain. */
  readonly licenses: string
}

/** Replaces `{{name}}` in a template of a package. @throws Error for a name without a value */
export const fill = (template: string, values: Readonly<Record<string, string>>): string =>
  template.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`A template asks for ${name}, which has no value.`)
    return value
  })
