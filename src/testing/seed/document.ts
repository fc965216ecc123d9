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
import { StartupError } from '../../errors.ts'
import { messageOf, sentence } from '../../runtime/error-info.ts'
import { describePlaced, placeWords, type TextPlace } from '../../runtime/validation/json-document.ts'
import { JsonReader } from '../../runtime/validation/json-reader.ts'
import type { ValidationError } from '../../runtime/validation/validation-error.ts'

/** A fixtures file, or a berth.yaml, that has been parsed. */
export interface FixturesDocument {
  readonly path: string
  /** Its content as plain JSON values. */
  readonly root: JsonReader
  /**
   * Returns the error that stops the start. It lists mistakes in the order of the file, each with line and column.
   */
  startupError(mistake: ValidationError): StartupError
}

/**
 * Reads a fixtures file or a berth.yaml, which are one kind of file. JSON is a subset of YAML (YAML 1.2.2, 1.3), so one
 * parser gives positions for both.
 *
 * @throws StartupError if the file is not readable, or is neither YAML nor JSON
 */
export function readFixturesDocument(path: string): FixturesDocument {
  const lines = new LineCounter()
  const document = parseDocument(readText(path), {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
  })
  const placeAt = (offset: number): TextPlace => {
    const { line, col: column } = lines.linePos(offset)
    return { offset, line, column }
  }
  const fileError = (reasons: string): StartupError =>
    new StartupError(`The file ${path}, ${reasons}${reasons.endsWith('\n') ? '' : ' '}Correct it.`)
  const errorAt = (offset: number, reason: string): StartupError =>
    fileError(`${placeWords(placeAt(offset))}: ${reason}`)
  // The parser only warns of an unknown tag, but the value would not be the one that was intended.
  const [wrong] = [...document.errors, ...document.warnings]
  if (wrong) {
    throw errorAt(wrong.pos[0], `this is neither YAML nor JSON: ${reasonOf(wrong)}`)
  }
  visit(document, {
    Alias(_key, alias) {
      if (alias.resolve(document)) return
      throw errorAt(
        startOf(alias) ?? 0,
        'this alias has no anchor above it. A text that begins with "*" needs quotes.',
      )
    },
  })
  let value: unknown
  try {
    value = document.toJS()
  } catch (error) {
    // Aliases that multiply each other.
    throw errorAt(0, sentence(messageOf(error)))
  }
  return {
    path,
    root: new JsonReader(value),
    startupError(mistake) {
      return fileError(describePlaced(mistake, (one) => placeAt(offsetOf(document, one))))
    },
  }
}

/** Returns the parser's reason without the text at that position, which may be a secret that lacks its quotes. */
function reasonOf({ code, message }: YAMLError): string {
  if (code === 'MULTIPLE_DOCS') return 'a second document begins here. A file holds one.'
  if (code !== 'TAG_RESOLVE_FAILED') return sentence(message)
  return 'this tag is unknown. A text that begins with "!" needs quotes.'
}

function readText(path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    const cause =
      error instanceof TypeError ? 'it is not UTF-8' : error instanceof Error ? error.message : error
    throw new StartupError(`The file ${path} cannot be read: ${cause}. Correct the path.`)
  }
}

/**
 * Returns the offset of a mistake's value or key. For a missing value it is the beginning of the object that lacks
 * it.
 */
function offsetOf(document: Document.Parsed, { path, kind }: ValidationError): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  for (const [index, step] of path.entries()) {
    const holder = isAlias(node) ? node.resolve(document) : node
    const pair = isMap(holder)
      ? holder.items.find(({ key }) => isScalar(key) && key.value === step)
      : undefined
    node = pair ? pair.value : isSeq(holder) ? holder.items[Number(step)] : undefined
    const isKey = (kind === 'key' || kind === 'unknown') && index === path.length - 1
    offset = (isKey ? startOf(pair?.key) : startOf(node)) ?? startOf(pair?.key) ?? offset
  }
  return offset
}

const startOf = (node: unknown): number | undefined => (isNode(node) ? node.range?.[0] : undefined)
