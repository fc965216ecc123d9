import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Whose packages these are, as the sources write it. */
const PLACEHOLDER = 'owner'

/** Whose packages these are: the name on npm, PyPI and GitHub, in lower case. The file `owner` beside this one has it. */
export const OWNER = readFileSync(join(import.meta.dir, 'owner'), 'utf8').trim()

/**
 * Puts the owner's name into a text in place of the placeholder, in each name that it is a part of: `@owner/berth…`, `owner-berth…`
 * and `github.com/owner/berth…`.
 */
export const withOwner = (text: string, owner = OWNER): string =>
  text.replaceAll(
    new RegExp(`(@|github\\.com/|\\b)${PLACEHOLDER}([/-]berth)`, 'g'),
    (_, before: string, after: string) => `${before}${owner}${after}`,
  )
