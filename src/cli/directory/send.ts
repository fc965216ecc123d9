import type { FileManifest } from '../../resources/files/manifest.ts'
import { CommandError } from '../errors.ts'
import { printable } from '../output.ts'
import { inParts, packPart } from './pack.ts'
import { type DirectorySurvey, partOf } from './survey.ts'

/** How far files have been sent. */
export interface SendProgress {
  /** Number of files that are sent. */
  readonly files: number
  /** Their size, in bytes. */
  readonly bytes: number
  /** How much of it has arrived, in bytes. */
  readonly sent: number
  /** Whether the request under way has the last of them, so that the server goes on with its work. */
  readonly isLast: boolean
}

/** What a request has beside its parameters. */
interface SendParts {
  readonly body: PushBody
  readonly form?: FormData
}

/** The manifest, as requests have it, and their other fields. */
type PushBody = Pick<FileManifest, 'links'> & {
  files: { path: string; sha256: string; executable: boolean }[]
}

/** What is sent, and how. */
interface Sending<Response> {
  readonly survey: DirectorySurvey
  readonly manifest: FileManifest
  /** Paths that the server most likely lacks, which are sent unasked. */
  readonly first: readonly string[]
  /** Other fields of each request. */
  readonly fields?: Readonly<Record<string, unknown>>
  /** @param isLast as in `SendProgress` */
  readonly request: (parts: SendParts, isLast: boolean) => Promise<Response>
  readonly onProgress: (progress: SendProgress) => void
  /** Ends the sending before the next part. */
  readonly signal: AbortSignal
}

/** How often the files that a server lacks are sent. */
const MAX_ATTEMPTS = 2

/**
 * Sends the manifest of a directory, and the content of the files that the server lacks, in as many parts as it takes.
 *
 * @returns the last response, and the paths that were sent
 * @throws CommandError if files change meanwhile, here or there; the signal's reason if it aborts
 */
export async function sendManifest<Response extends { missing: string[] }>(
  sending: Sending<Response>,
): Promise<{ response: Response; sent: readonly string[] }> {
  let sent = sending.first
  let response = await sendParts(sending, sent)
  // A push before that fails meanwhile has its files put back.
  for (let attempt = 0; response.missing.length > 0 && attempt < MAX_ATTEMPTS; attempt += 1) {
    sent = response.missing
    response = await sendParts(sending, sent)
  }
  if (response.missing.length === 0) return { response, sent }
  throw new CommandError(
    `${printable(response.missing[0] ?? '')} changed on the server or here while it was sent. Push again.`,
  )
}

async function sendParts<Response extends { missing: string[] }>(
  { survey, manifest, fields = {}, request, onProgress, signal }: Sending<Response>,
  paths: readonly string[],
): Promise<Response> {
  const files = manifest.files.map(({ path, sha256, executable }) => ({ path, sha256, executable }))
  const body = { files, links: manifest.links, ...fields }
  signal.throwIfAborted()
  if (paths.length === 0) {
    onProgress({ files: 0, bytes: 0, sent: 0, isLast: true })
    return request({ body }, true)
  }
  const parts = inParts(partOf(survey, paths))
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0)
  let sent = 0
  for (const [index, part] of parts.entries()) {
    const form = new FormData()
    for (const [name, value] of Object.entries(body))
      form.set(name, typeof value === 'string' ? value : JSON.stringify(value))
    if (part.pieces.length > 0) form.set('pieces', JSON.stringify(part.pieces))
    form.set('archive', new Blob([await packPart(part)]), 'archive')
    const isLast = index === parts.length - 1
    signal.throwIfAborted()
    onProgress({ files: paths.length, bytes, sent, isLast })
    const response = await request({ body, form }, isLast)
    sent += part.bytes
    // Nothing is missing once the last part has come, or what is left is there already.
    if (response.missing.length === 0 || isLast) return response
  }
  throw new Error('There is at least one part.')
}

/** How far a directory was sent when Ctrl-C ended that. */
export type SendStage =
  /** The server does not have all files yet. */
  | 'incomplete'
  /** The last of them are under way. */
  | 'last files'
  /** It has them, and brings them up. */
  | 'bring-up'
  /** Nothing is under way. */
  | 'done'

/**
 * Says what becomes of a directory whose sending was ended by Ctrl-C, on a line; empty if nothing was under way.
 *
 * @param work what the server does once it has the files
 * @param look the command that shows it
 */
export function interruptedText(stage: SendStage, work: string, look: string): string {
  const goesOn = `${work} goes on. If it fails, the version before goes on, with its files. Look at it with: ${look}\n`
  switch (stage) {
    case 'incomplete':
      return 'not all files were sent, so nothing has changed on the server.\n'
    case 'last files':
      return `if all files had arrived, ${goesOn}`
    case 'bring-up':
      return goesOn
    case 'done':
      return ''
  }
}
