import { readFileSync } from 'node:fs'
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type YAMLError,
} from 'yaml'
import { Given, type Mistake } from '../../contract/given.ts'
import { StartupError } from '../../errors.ts'

/** A fixtures file that has been parsed. */
export interface FixturesDocument {
  readonly path: string
  /** What stands in it: plain JSON values. */
  readonly given: Given
  /** Tells where a mistake stands, as what stops the start. */
  refusal(mistake: Mistake): StartupError
}

/**
 * Reads a fixtures file. JSON is read as the YAML that it is too (YAML 1.2.2, 1.3): one parser gives positions for both.
 *
 * @throws StartupError where it cannot be read or is neither
 */
export function readDocument(path: string): FixturesDocument {
  const lines = new LineCounter()
  const document = parseDocument(textOf(path), { lineCounter: lines, prettyErrors: false, stringKeys: true })
  const refuse = (offset: number, reason: string): StartupError => {
    const { line, col } = lines.linePos(offset)
    return new StartupError(
      `The fixtures file ${path}, line ${line}, column ${col}: ${reason}${reason.endsWith('\n') ? '' : ' '}Correct it, or start without this file.`,
    )
  }
  // A tag that nobody knows is only warned of: the value would be another than was meant.
  const [wrong] = [...document.errors, ...document.warnings]
  if (wrong) {
    throw refuse(wrong.pos[0], `it is not written as YAML or JSON is: ${reasonOf(wrong)}`)
  }
  visit(document, {
    Alias(_key, alias) {
      if (alias.resolve(document)) return
      throw refuse(
        startOf(alias) ?? 0,
        'an alias stands there of what has no such name above it. A text that begins with "*" needs quotes.',
      )
    },
  })
  let value: unknown
  try {
    value = document.toJS()
  } catch (error) {
    // Aliases that multiply each other.
    throw refuse(0, sentence(error instanceof Error ? error.message : String(error)))
  }
  return {
    path,
    given: new Given(value),
    refusal: (mistake) => refuse(offsetOf(document, mistake), mistake.sentence()),
  }
}

/** What the parser says is wrong, without what stands there: it may be a secret that lacks its quotes. */
function reasonOf({ code, message }: YAMLError): string {
  if (code === 'MULTIPLE_DOCS') return 'a second document begins; a file holds one.'
  if (code !== 'TAG_RESOLVE_FAILED') return sentence(message)
  return 'a tag stands there that is not known. A text that begins with "!" needs quotes.'
}

function textOf(path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    const cause =
      error instanceof TypeError ? 'it is not UTF-8' : error instanceof Error ? error.message : error
    throw new StartupError(
      `The fixtures file ${path} cannot be read: ${cause}. Correct the path, or start without this file.`,
    )
  }
}

/** Where a mistake's value or key begins; of what is missing, where the object begins that should have it. */
function offsetOf(document: Document.Parsed, { place, at }: Mistake): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  for (const [index, step] of place.entries()) {
    const holder = isAlias(node) ? node.resolve(document) : node
    const pair = isMap(holder)
      ? holder.items.find(({ key }) => isScalar(key) && key.value === step)
      : undefined
    node = pair ? pair.value : isSeq(holder) ? holder.items[Number(step)] : undefined
    const isKey = at === 'key' && index === place.length - 1
    offset = (isKey ? startOf(pair?.key) : startOf(node)) ?? startOf(pair?.key) ?? offset
  }
  return offset
}

const startOf = (node: unknown): number | undefined => (isNode(node) ? node.range?.[0] : undefined)

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)
