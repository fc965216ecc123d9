import { join } from 'node:path'
import { BODY_LIMIT } from '../../http/body.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { readLocal } from '../local-file.ts'
import { encode, listFiles } from '../nouns/files.ts'
import { formatBytes } from '../output.ts'
import { shellQuote } from '../quote.ts'
import type { DirectorySurvey, LocalFile } from './survey.ts'

/** Number of concurrent requests. */
const CONCURRENCY = 8

/** Bytes of a file that fit into a request: base64 takes four thirds, and the path takes the rest. */
const MAX_BYTES = Math.floor(((BODY_LIMIT - 16 * 1024) * 3) / 4)

/** Characters of a command, well below the limit that Linux has for one argument. */
const MAX_COMMAND_LENGTH = 64 * 1024

/**
 * Writes a directory's files into a server's workspace, several at a time. Then makes files executable and creates
 * links, which a write cannot do.
 *
 * @param onFile called with each file that was written
 * @throws CommandError if a file is too large, cannot be read or is refused; others may be written by then
 */
export async function uploadDirectory(
  client: Client,
  serverId: string,
  survey: DirectorySurvey,
  onFile: (file: LocalFile) => void = () => {},
): Promise<void> {
  const { root, files, links } = survey
  const large = files.find(({ size }) => size > MAX_BYTES)
  if (large) {
    throw new CommandError(
      `${large.path} has ${formatBytes(large.size)}; a file that is uploaded may have ${formatBytes(MAX_BYTES)}. Leave it out with a .gitignore file, or fetch it on the server.`,
    )
  }
  await forEachConcurrently(files, async (file) => {
    await upload(client, serverId, root, file)
    onFile(file)
  })
  const executable = files.filter(({ isExecutable }) => isExecutable).map((file) => file.path)
  await runAll(
    client,
    serverId,
    executable.map((file) => `chmod 755 ${shellQuote([`./${file}`])}`),
  )
  await runAll(
    client,
    serverId,
    links.map(({ path: link, target }) => {
      const at = `./${link}`
      const directory = at.slice(0, at.lastIndexOf('/'))
      return `mkdir -p ${shellQuote([directory])} && ln -sfn ${shellQuote(['--', target, at])}`
    }),
  )
}

/**
 * Removes the files from a server's workspace that the directory does not have, except for the directories of its
 * projects.
 *
 * @param onFound called with the files before they are removed
 * @returns the number of removed files
 */
export async function removeOthers(
  client: Client,
  serverId: string,
  { files, links }: DirectorySurvey,
  onFound: (paths: readonly string[]) => Promise<void>,
): Promise<number> {
  const present = await listFiles(client, serverId, true)
  const { projects } = await client.call('projects.list', { params: { serverId } })
  const kept = new Set([...files, ...links].map((entry) => entry.path))
  const isProject = (file: string) => projects.some(({ slug }) => file.startsWith(`projects/${slug}/`))
  const others = present.filter((file) => !kept.has(file) && !isProject(file))
  await onFound(others)
  const stays = directoriesOf(present.filter((file) => kept.has(file) || isProject(file)))
  const removed = new Set(others.map((file) => outermost(file, stays)))
  await forEachConcurrently([...removed], (path) =>
    client.call('files.delete', { params: { serverId }, query: { path } }),
  )
  return others.length
}

/** Removes files from a server's workspace; those that are gone already are no error. */
export async function removeFiles(client: Client, serverId: string, paths: readonly string[]): Promise<void> {
  await forEachConcurrently(paths, (path) =>
    client.call('files.delete', { params: { serverId }, query: { path } }).catch((error: unknown) => {
      if (!(error instanceof CommandError && error.code === 'not_found')) throw error
    }),
  )
}

/** Returns all directories of the files, at any depth. */
function directoriesOf(files: readonly string[]): Set<string> {
  const directories = new Set<string>()
  for (const file of files) {
    for (let at = file.lastIndexOf('/'); at > 0; at = file.lastIndexOf('/', at - 1))
      directories.add(file.slice(0, at))
  }
  return directories
}

/** Returns the largest directory around a file without a file to keep, else the file. */
function outermost(file: string, stays: ReadonlySet<string>): string {
  for (let at = file.indexOf('/'); at > 0; at = file.indexOf('/', at + 1)) {
    const directory = file.slice(0, at)
    if (!stays.has(directory)) return directory
  }
  return file
}

async function upload(client: Client, serverId: string, root: string, file: LocalFile): Promise<void> {
  const bytes = await readLocal(join(root, file.path), file.path)
  const body = { path: file.path, ...encode(bytes) }
  await client.call('files.write', { params: { serverId }, body }).catch((error: Error) => {
    throw new CommandError(`${file.path} was not uploaded, and nothing published: ${error.message}`)
  })
}

/** Runs shell commands on a server in as few calls as their length allows. */
async function runAll(client: Client, serverId: string, commands: readonly string[]): Promise<void> {
  for (let next = 0; next < commands.length; ) {
    let command = commands[next] ?? ''
    for (next += 1; next < commands.length && command.length < MAX_COMMAND_LENGTH; next += 1)
      command += ` && ${commands[next]}`
    const { exitCode, stderr } = await client.call('exec.run', { params: { serverId }, body: { command } })
    if (exitCode !== 0) {
      throw new CommandError(
        `Files could not be made executable, or links could not be created, on the server: ${stderr.trim()}`,
      )
    }
  }
}

/** Runs `act` for each item, several at a time. Stops at the first failure. */
async function forEachConcurrently<One>(
  many: readonly One[],
  act: (one: One) => Promise<unknown>,
): Promise<void> {
  let next = 0
  const work = async (): Promise<void> => {
    for (let one = many[next++]; one !== undefined; one = many[next++]) {
      await act(one).catch((error) => {
        next = many.length
        throw error
      })
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
}
