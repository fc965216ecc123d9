import { expect } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { LocalWorkspace } from '../../../../src/compute/local/workspace.ts'
import { BerthError } from '../../../../src/errors.ts'
import { SourceError } from '../../../../src/resources/projects/sources/errors.ts'
import type { FetchedSource } from '../../../../src/resources/projects/sources/model.ts'
import { Sources, type SourcesOptions } from '../../../../src/resources/projects/sources/sources.ts'
import { processesOf, until } from '../../../support/processes.ts'

/** Where the project of a test stands in the workspace. */
export const PATH = 'projects/app'

/**
 * A workspace, sources that lead into it, and a folder `repos` that repositories may be taken from. Going out of scope
 * it fails on a process, a staged file or a placed secret that was left behind.
 */
export class World implements AsyncDisposable {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'berth-sources-')))
  readonly repos = join(this.folder, 'repos')
  readonly workspace = new LocalWorkspace(join(this.folder, 'workspace'))
  readonly sources: Sources
  /** What was logged. */
  readonly lines: string[] = []

  constructor(options: Partial<SourcesOptions> = {}) {
    mkdirSync(join(this.folder, 'workspace'))
    mkdirSync(this.repos)
    this.sources = new Sources({
      sourceFolders: [this.repos],
      allowLocal: false,
      environment: { PATH: process.env.PATH },
      ...options,
    })
  }

  /** Fetches to the project's path. */
  fetch(source: FetchedSource, rest: { signal?: AbortSignal; room?: number } = {}): Promise<string[]> {
    return this.sources.fetch(source, this.destination(rest))
  }

  unpack(archive: Uint8Array, rest: { room?: number } = {}): Promise<string[]> {
    return this.sources.unpack(archive, this.destination(rest))
  }

  destination({
    signal = new AbortController().signal,
    ...rest
  }: {
    signal?: AbortSignal
    room?: number
  } = {}) {
    const log = (text: string) => void this.lines.push(text)
    return { workspace: this.workspace, path: PATH, signal, log, ...rest }
  }

  /** The host's path of something in the project. */
  at(path: string): string {
    return join(this.folder, 'workspace', PATH, path)
  }

  /** Files, folders and links of the project, without what git keeps. */
  tree(): string[] {
    if (!existsSync(this.at('.'))) return []
    return readdirSync(this.at('.'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path !== '.git' && !path.startsWith('.git/'))
      .sort()
  }

  text(path: string): string {
    return readFileSync(this.at(path), 'utf8')
  }

  /** Makes a repository with files and one commit. */
  repo(name: string, files: Record<string, string> = { 'a.txt': 'one' }): Repo {
    const repo = new Repo(join(this.repos, name))
    repo.git('init', '-q', '-b', 'trunk')
    repo.write(files)
    repo.commit('first')
    return repo
  }

  /** Nothing was changed by a refusal: neither the project nor the staging area. */
  expectNothing(): void {
    expect(existsSync(join(this.folder, 'workspace/projects'))).toBe(false)
    expect(this.staged()).toEqual([])
  }

  staged(): string[] {
    const area = join(this.folder, 'staging')
    return existsSync(area) ? readdirSync(area) : []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const staged = this.staged()
    await until(() => processesOf(this.folder).length === 0, `end: ${processesOf(this.folder).join('; ')}`)
    await Bun.spawn(['rm', '-rf', this.folder]).exited
    expect(staged).toEqual([])
  }
}

/** A repository of a test. */
export class Repo {
  constructor(readonly path: string) {
    mkdirSync(path, { recursive: true })
  }

  git(...args: string[]): string {
    const env = {
      PATH: process.env.PATH,
      HOME: this.path,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_AUTHOR_NAME: 'a',
      GIT_AUTHOR_EMAIL: 'a@test',
      GIT_COMMITTER_NAME: 'a',
      GIT_COMMITTER_EMAIL: 'a@test',
    }
    const { exitCode, stdout, stderr } = Bun.spawnSync(['git', '-C', this.path, ...args], { env })
    if (exitCode !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
    return stdout.toString().trim()
  }

  write(files: Record<string, string>): void {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.path, name)), { recursive: true })
      writeFileSync(join(this.path, name), text)
    }
  }

  /** Commits everything and returns the commit's id. */
  commit(message: string): string {
    this.git('add', '-A')
    this.git('commit', '-q', '--allow-empty', '-m', message)
    return this.git('rev-parse', 'HEAD')
  }

  /** Commits a tree that git itself would not make: lines of `git mktree`. */
  commitTree(lines: string[]): void {
    const made = Bun.spawnSync(['git', '-C', this.path, 'mktree', '--missing'], {
      stdin: Buffer.from(`${lines.join('\n')}\n`),
    })
    const commit = this.git('commit-tree', '-m', 'odd', made.stdout.toString().trim())
    this.git('update-ref', 'refs/heads/trunk', commit)
  }

  blob(text: string): string {
    const made = Bun.spawnSync(['git', '-C', this.path, 'hash-object', '-w', '--stdin'], {
      stdin: Buffer.from(text),
    })
    return made.stdout.toString().trim()
  }
}

/** The sentence of a refused fetch. */
export async function sentenceOf(call: Promise<unknown>): Promise<string> {
  const outcome = await call.then(
    () => 'it was taken',
    (error) => error,
  )
  if (outcome instanceof SourceError) return outcome.message
  throw new Error(`expected a SourceError, got ${Bun.inspect(outcome)}`)
}

/** The sentence of a 400. */
export async function badRequestOf(call: Promise<unknown>): Promise<string> {
  const outcome = await call.then(
    () => 'it was taken',
    (error) => error,
  )
  if (outcome instanceof BerthError && outcome.code === 'bad_request') return outcome.message
  throw new Error(`expected a 400, got ${Bun.inspect(outcome)}`)
}
