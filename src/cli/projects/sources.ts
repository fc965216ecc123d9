import { readFile, stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import { BODY_LIMIT } from '../../http/body.ts'
import type { ProjectDetect } from '../../resources/projects/model.ts'
import { FORM_OVERHEAD } from '../directory/pack.ts'
import { CommandError } from '../errors.ts'
import { unreadable } from '../local-file.ts'
import type { ProcessContext } from '../process-context.ts'

/** The sources of a project's code. At most one may be given, and `ref` only with `git`. */
export interface SourceOptions {
  template?: string | undefined
  git?: string | undefined
  ref?: string | undefined
  /** A file or a URL. */
  archive?: string | undefined
  /** A directory of this machine. */
  from?: string | undefined
}

/** The code of a new project. */
export interface CodeToSend {
  /** Fields of the request that describe it. */
  body: ProjectDetect
  /** Archive to send with the request. */
  archive?: Uint8Array<ArrayBuffer>
  /** Default name of the project. Without it the API chooses one. */
  name?: string
}

/** Largest number of characters of a project's name. @bound owner */
const LONGEST_NAME = 100

/**
 * Checks the sources.
 *
 * @throws UsageError for more than one, or a ref without a repository
 */
export function checkSourceOptions({ ref, ...sources }: SourceOptions): void {
  const given = Object.values(sources).filter((value) => value !== undefined)
  if (given.length > 1)
    throw new UsageError('Say where the code comes from once: a directory, --template, --git or --archive.')
  if (ref !== undefined && sources.git === undefined)
    throw new UsageError('--ref names a branch, a tag or a commit of the repository that --git gives.')
}

/**
 * Prepares the code to send, unless it is a directory: reads an archive.
 *
 * @throws CommandError if it cannot be read or is too large for a request
 */
export async function prepareCode(options: SourceOptions, context: ProcessContext): Promise<CodeToSend> {
  const { template, git, ref, archive } = options
  if (template !== undefined) return { body: { template } }
  if (git !== undefined) {
    // A relative path is relative to the person's working directory.
    const url = /^\.\.?(?:\/|$)/.test(git) ? resolve(context.cwd, git) : git
    return {
      body: { source: { type: 'git', url, ...(ref === undefined ? {} : { ref }) } },
      ...nameFromPath(url),
    }
  }
  if (archive === undefined) return { body: {} }
  if (/^https?:\/\//i.test(archive)) {
    return { body: { source: { type: 'archive', url: archive } }, ...nameFromPath(new URL(archive).pathname) }
  }
  return { body: {}, archive: await readArchive(archive, context), ...nameFromPath(archive) }
}

async function readArchive(file: string, { cwd }: ProcessContext): Promise<Uint8Array<ArrayBuffer>> {
  const path = resolve(cwd, file)
  try {
    const { size } = await stat(path)
    if (size <= BODY_LIMIT - FORM_OVERHEAD) return await readFile(path)
  } catch (error) {
    throw unreadable(file, error)
  }
  throw new CommandError(
    `${file} is larger than the ${BODY_LIMIT / 1024 / 1024} MiB that a request may have. Put it where berth can fetch it, and give its URL.`,
  )
}

/** Returns the last part of a path or URL, without its extension. */
export function nameFromPath(path: string): { name?: string } {
  const name = basename(path.replaceAll('\\', '/'))
    .replace(/\.(?:git|zip|tar|tgz|tar\.gz)$/i, '')
    .replaceAll(/\p{Cc}/gu, '')
    .slice(0, LONGEST_NAME)
  return name === '' ? {} : { name }
}

/** Returns the fields that describe the code of a new project, with the app's own directory in it. */
export function withDirectory(
  { body: { template, source }, archive }: CodeToSend,
  directory: string | undefined,
): ProjectDetect {
  if (directory === undefined) return { ...(template && { template }), ...(source && { source }) }
  if (source !== undefined) return { source: { ...source, directory } }
  if (template !== undefined) return { source: { type: 'template', template, directory } }
  return { source: { type: archive === undefined ? 'blank' : 'archive', directory } }
}

/** Returns the parts of a request with code: a form if it has an archive, else JSON. */
export function requestWith<Body extends object>(
  body: Body,
  archive: Uint8Array<ArrayBuffer> | undefined,
): { body: Body } | { form: FormData } {
  if (archive === undefined) return { body }
  const form = new FormData()
  for (const [name, value] of Object.entries(body))
    form.set(name, typeof value === 'string' ? value : JSON.stringify(value))
  form.set('archive', new Blob([archive]), 'archive')
  return { form }
}
