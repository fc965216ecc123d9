import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { ifPresent } from '../../runtime/if-present.ts'
import { type Entry, isEmptyOf, readAgentEntry, removeAgentEntry, writeEntry } from '../agents/edit.ts'
import { findHosts, MCP_HOSTS, type McpHost } from '../agents/hosts.ts'
import { action, type Noun, rows } from '../command.ts'
import { askYes } from '../confirm.ts'
import { CommandError } from '../errors.ts'
import { findBaseUrl } from '../find-instance.ts'
import { flag } from '../options.ts'
import { paint, printable } from '../output.ts'
import { isInteractive, type OutputStream, type ProcessContext } from '../process-context.ts'
import type { Column } from '../table.ts'

/** A host on this machine. */
interface ListedHost {
  id: string
  label: string
  /** Whether the host is installed here. */
  is_found: boolean
  /** The address of berth in its file; null without one. */
  url: string | null
  file: string | null
}

const COLUMNS: readonly Column<ListedHost>[] = [
  { heading: 'ASSISTANT', cell: ({ id }) => id },
  { heading: 'NAME', cell: ({ label }) => label, minor: 2 },
  {
    heading: 'FOUND',
    cell: ({ is_found }) => (is_found ? 'yes' : 'no'),
    style: ({ is_found }) => (is_found ? 'green' : 'dim'),
  },
  { heading: 'BERTH', cell: ({ url }) => url ?? '–' },
  { heading: 'FILE', cell: ({ file }) => file ?? '–', minor: 1, elastic: true },
]

const PROJECT = flag("this directory's file of the host, in place of yours for all projects")
const YES = flag('write without asking', { short: 'y' })

/** `berth agents` */
export const agentsNoun: Noun = {
  name: 'agents',
  summary: 'connect coding assistants to berth',
  description:
    'Writes the MCP endpoint of the instance into the configuration files of coding assistants. Plain "berth agents" lists those that berth knows.',
  help: `
Examples:
  berth agents                         which are here, and which know berth
  berth agents setup                   show the changes for all here, and ask
  berth agents setup claude --project  for this directory only
  berth agents setup codex --key       with BERTH_API_KEY, without a browser
`,
  commands: [
    action({
      usage: 'list',
      description: 'list the hosts of MCP that berth knows, and what their files say of berth',
      access: 'none',
      json: 'the hosts as JSON, for programs',
      options: { project: PROJECT },
      async run({ session: { context }, options: { project }, print }) {
        const hosts = await Promise.all(MCP_HOSTS.map((host) => listed(host, context, project === true)))
        return print({ hosts }, rows('hosts', COLUMNS))
      },
    }),
    action({
      usage: 'setup [ASSISTANT...]',
      description:
        'write the address of the instance into the files of hosts; by default of all that are here',
      access: 'api',
      json: null,
      options: {
        project: PROJECT,
        key: flag('have the host send the key in BERTH_API_KEY, in place of a sign-in'),
        yes: YES,
      },
      async run({ session: { context }, args: [names], options }) {
        const { baseUrl } = findBaseUrl(options, context)
        if (baseUrl === undefined)
          throw new CommandError(
            'No berth runs here. Start one with "berth serve", or give its address with --base-url.',
          )
        const hosts = names.length > 0 ? findHosts(names) : MCP_HOSTS.filter((host) => isFound(host, context))
        if (hosts.length === 0)
          throw new CommandError(
            `None of the hosts that berth knows is here. Name one: ${MCP_HOSTS.map(({ id }) => id).join(', ')}.`,
          )
        for (const host of hosts) {
          const file = fileOf(host, context, options.project === true)
          const entry = { ...host.entry(`${baseUrl}/mcp`), ...(options.key ? keyOf(host) : {}) }
          const isWritten = await change(
            host,
            file,
            (text) => writeEntry(text, entry, host, file),
            context,
            options.yes,
          )
          if (isWritten && !options.key) await context.stdout.write(`${host.label}: ${host.signIn}\n`)
        }
        return 0
      },
    }),
    action({
      usage: 'delete <ASSISTANT...>',
      description: "take berth's entry out of the files of hosts",
      access: 'none',
      json: null,
      options: { project: PROJECT, yes: YES },
      async run({ session: { context }, args: [names], options }) {
        for (const host of findHosts(names)) {
          const file = fileOf(host, context, options.project === true)
          await change(host, file, (text) => removeAgentEntry(text, host, file), context, options.yes)
        }
        return 0
      },
    }),
  ],
}

async function listed(host: McpHost, context: ProcessContext, isProject: boolean): Promise<ListedHost> {
  const file = isProject ? projectFile(host, context) : host.userFile(context)
  const entry = file === null ? null : await entryIn(file, host)
  return { id: host.id, label: host.label, is_found: isFound(host, context), url: urlIn(entry), file }
}

/** A file in another format has no entry that could be shown. */
const entryIn = (file: string, host: McpHost): Promise<Entry | null> =>
  readAgentEntry(textOf(file), host, file).catch(() => null)

const urlIn = (entry: Entry | null): string | null => {
  const url = entry?.url ?? entry?.httpUrl
  return typeof url === 'string' ? printable(url) : null
}

/** Reports whether a host is installed here: its program, or the directory of its files. */
function isFound(host: McpHost, context: ProcessContext): boolean {
  if (Bun.which(host.program, { PATH: context.env.PATH ?? '' }) !== null) return true
  const file = host.userFile(context)
  return (
    file !== null && (existsSync(file) || (dirname(file) !== context.env.HOME && existsSync(dirname(file))))
  )
}

const projectFile = (host: McpHost, { cwd }: ProcessContext): string | null =>
  host.projectFile === null ? null : join(cwd, host.projectFile)

function fileOf(host: McpHost, context: ProcessContext, isProject: boolean): string {
  const file = isProject ? projectFile(host, context) : host.userFile(context)
  if (file !== null) return file
  throw new CommandError(
    isProject
      ? `${host.label} has no file of a project. Leave out --project.`
      : `The file of ${host.label} is in your home directory, and you have none: HOME is not set. Use --project.`,
  )
}

function keyOf(host: McpHost): Entry {
  if (host.withKey !== null) return host.withKey
  throw new CommandError(
    `The file of ${host.label} takes no key from the environment. Leave out --key to sign in, or see "berth guide mcp".`,
  )
}

const textOf = (file: string): string => ifPresent(() => readFileSync(file, 'utf8')) ?? ''

/**
 * Shows how a file would change, and changes it if the person agrees.
 *
 * @returns whether it was written
 */
async function change(
  host: McpHost,
  file: string,
  edit: (text: string) => Promise<string>,
  context: ProcessContext,
  yes: true | undefined,
): Promise<boolean> {
  const { stdout } = context
  const before = textOf(file)
  const after = await edit(before)
  if (after === before) {
    await stdout.write(`${host.label}: ${file} is as it should be.\n`)
    return false
  }
  await stdout.write(await diffOf(file, before, after, stdout))
  if (!yes && !isInteractive(context)) {
    await stdout.write(`${host.label}: nothing was written. --yes writes it.\n`)
    return false
  }
  // Such a file is what "setup" makes where there is none. A link leads to somebody's own.
  const isLeftover = isEmptyOf(after, host) && lstatSync(file).isFile()
  if (!yes && !(await askYes(`${isLeftover ? 'Remove' : 'Write'} ${file}?`, context))) {
    await stdout.write(`${host.label}: nothing was written.\n`)
    return false
  }
  if (isLeftover) rmSync(file)
  else writeFile(file, after)
  await stdout.write(`${host.label}: ${isLeftover ? 'removed' : 'wrote'} ${file}.\n`)
  return true
}

async function diffOf(file: string, before: string, after: string, out: OutputStream): Promise<string> {
  const { createTwoFilesPatch } = await import('diff')
  const patch = createTwoFilesPatch(file, file, before, after, undefined, undefined, { context: 3 })
  return patch
    .split('\n')
    .slice(1)
    .map((line) => {
      if (line.startsWith('+')) return paint(out, 'green', printable(line))
      return line.startsWith('-') ? paint(out, 'red', printable(line)) : printable(line)
    })
    .join('\n')
}

/** Replaces a file, whole or not at all. Keeps its mode, and a link to it. */
function writeFile(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true })
    const target = existsSync(file) ? realpathSync(file) : file
    const fresh = `${target}.berth-new`
    const mode = statSync(target, { throwIfNoEntry: false })?.mode
    writeFileSync(fresh, text)
    if (mode !== undefined) chmodSync(fresh, mode & 0o777)
    renameSync(fresh, target)
  } catch (error) {
    throw new CommandError(`${file} cannot be written: ${error instanceof Error ? error.message : error}.`)
  }
}
