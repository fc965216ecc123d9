import { compareManifests, type FileManifest } from '../../resources/files/manifest.ts'
import { CommandError } from '../errors.ts'
import { formatBytes, printable } from '../output.ts'
import type { OutputStream } from '../process-context.ts'
import { StatusLine } from '../status-line.ts'
import { ManifestReader } from './manifest.ts'
import { inParts, packPart } from './pack.ts'
import { notesOn, sizeText } from './report.ts'
import { type DirectorySurvey, isLeftOut, partOf, surveyDirectory } from './survey.ts'

/*
 * How the commands send a directory. All survey it and describe it by a manifest; they differ in what they compare that
 * with, and in what the server does with the files:
 *
 * cp       copies everything as it is, compares nothing, and surveys nothing: `../copy/upload.ts`
 * sync     compares with the files of the server, and writes into them: `sync.ts`
 * deploy   compares with what it sent last, writes into the workspace and publishes it: `deploy.ts`
 * push, up compare with the project's files and replace them, then follow its bring-up: `../projects/pusher.ts`
 */

/** The files of a directory at one time. */
export interface LocalFiles {
  readonly survey: DirectorySurvey
  readonly manifest: FileManifest
}

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
  readonly files: LocalFiles
  /** Other fields of each request. */
  readonly fields?: Readonly<Record<string, unknown>>
  /** @param isLast as in `SendProgress` */
  readonly request: (parts: SendParts, isLast: boolean) => Promise<Response>
  readonly onProgress: (progress: SendProgress) => void
  /** Ends the sending before the next part. */
  readonly signal: AbortSignal
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

/** How a directory is named, and where its reading is shown. */
interface DirectoryDisplay {
  readonly stderr: OutputStream
  /** The directory as messages name it. */
  readonly named: string
  /** Shows nothing but errors. */
  readonly isQuiet?: boolean
  /** Where the reading is shown; by default on a line of its own. */
  readonly status?: StatusLine | undefined
  /** Name on that line. */
  readonly label?: string | undefined
}

/** A directory that is sent again and again: what is in it, what was sent last, and how far the last sending is. */
export class OutgoingDirectory {
  /** Absolute path. */
  readonly path: string
  readonly #reader = new ManifestReader()
  #survey: DirectorySurvey | null = null
  /** What was sent last and did come up; null before. */
  sent: FileManifest | null = null
  /** How far the last sending is, or was when it was interrupted. */
  stage: SendStage = 'done'

  constructor(path: string) {
    this.path = path
  }

  /** What was found in the directory last; null before the first time. */
  get survey(): DirectorySurvey | null {
    return this.#survey
  }

  /** Reports whether a path was left out the last time. */
  readonly isLeftOut = (path: string): boolean => isLeftOut(this.#survey, path)

  /**
   * Finds the files, and reads those whose hashes are not known.
   *
   * @param display shows how far that is; then a directory without files is refused
   * @throws CommandError if a file cannot be read
   */
  async read(display?: DirectoryDisplay): Promise<LocalFiles> {
    const survey = await surveyDirectory(this.path)
    this.#survey = survey
    if (display === undefined) return { survey, manifest: await this.#reader.read(survey) }
    const { stderr, named, isQuiet, label = '' } = display
    if (survey.files.length === 0)
      throw new CommandError(
        `${named} has no file to send. ${notesOn(survey, 'berth secrets import')}`.trim(),
      )
    using own = new StatusLine(stderr)
    const { status = own } = display
    let read = 0
    const before = `${label === '' ? '' : `${label}: `}comparing ${sizeText(survey)}: `
    if (!isQuiet) status.show(label, (elapsed) => `${before}${formatBytes(read)} read … ${elapsed}`)
    try {
      const manifest = await this.#reader.read(survey, (bytes) => {
        read += bytes
      })
      return { survey, manifest }
    } finally {
      status.end(label)
    }
  }

  /** Returns the paths that differ from what was sent last, those included that are gone; none before the first time. */
  changedSince({ manifest }: LocalFiles): { changed: string[]; extra: string[] } {
    return this.sent === null ? { changed: [], extra: [] } : compareManifests(manifest, this.sent)
  }

  /**
   * Runs a sending with all that follows it, and keeps how far it was if the signal ends it.
   *
   * @throws what it throws
   */
  async track<Result>(signal: AbortSignal, run: () => Promise<Result>): Promise<Result> {
    // One after the first begins because something has changed in the directory, which may be nothing that is sent.
    this.stage = this.sent === null ? 'incomplete' : 'done'
    try {
      const result = await run()
      this.stage = 'done'
      return result
    } catch (error) {
      if (!signal.aborted) this.stage = 'done'
      throw error
    }
  }

  /**
   * Sends the manifest, and the content of the files that the server lacks, in as many parts as it takes. What has changed
   * since it was sent last is sent unasked.
   *
   * @returns the last response, and the paths that were sent
   * @throws CommandError if files change meanwhile, here or there; the signal's reason if it aborts
   */
  async send<Response extends { missing: string[] }>(
    sending: Sending<Response>,
  ): Promise<{ response: Response; sent: readonly string[] }> {
    let sent: readonly string[] = this.changedSince(sending.files).changed
    let response = await sendParts(sending, sent)
    // A push before that fails meanwhile has its files put back.
    for (let attempt = 0; response.missing.length > 0 && attempt < MAX_ATTEMPTS; attempt += 1) {
      sent = response.missing
      response = await sendParts(sending, sent)
    }
    if (response.missing.length > 0)
      throw new CommandError(
        `${printable(response.missing[0] ?? '')} changed on the server or here while it was sent. Push again.`,
      )
    this.sent = sending.files.manifest
    return { response, sent }
  }
}

/** How often the files that a server lacks are sent. @bound owner */
const MAX_ATTEMPTS = 2

async function sendParts<Response extends { missing: string[] }>(
  { files: { survey, manifest }, fields = {}, request, onProgress, signal }: Sending<Response>,
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
