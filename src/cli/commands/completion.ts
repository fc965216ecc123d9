import { Argument, type Command } from 'commander'
import type { Build } from '../../resources/builds/model.ts'
import { EVENT_NAMES } from '../../resources/events/names.ts'
import type { ApiKey } from '../../resources/keys/model.ts'
import type { Project } from '../../resources/projects/model.ts'
import type { Server } from '../../resources/servers/model.ts'
import type { ProjectTemplate } from '../../resources/templates/model.ts'
import type { Webhook } from '../../resources/webhooks/model.ts'
import type { Account } from '../../testing/api/accounts.ts'
import type { Delivery } from '../../testing/api/deliveries.ts'
import type { Fault } from '../../testing/api/faults.ts'
import type { InboxSummary } from '../../testing/inbox/model.ts'
import type { Snapshot } from '../../testing/snapshots/snapshots.ts'
import { statusOf as buildStatus } from '../builds/show.ts'
import type { Client } from '../client.ts'
import { type Candidate, complete, type Known, type KnownToControl, SHELLS, type Shell } from '../complete.ts'
import { path } from '../path.ts'
import { statusOf } from '../projects/show.ts'
import { connect, connectControl, type Session } from '../session.ts'

/** Long enough for an instance on this machine, be that busy; a person at the TAB key waits no longer. */
const IDS_WITHIN_MS = 1_000

const MORE = `
Load it for good:
  bash   echo 'source <(berth completion bash)' >> ~/.bashrc
  zsh    echo 'source <(berth completion zsh)' >> ~/.zshrc     (behind compinit)
  fish   berth completion fish > ~/.config/fish/completions/berth.fish
`

/** Adds `completion` and the hidden command that the scripts ask. */
export function registerCompletion(program: Command, session: Session): void {
  const { stdout } = session.terminal
  program
    .command('completion')
    .addArgument(new Argument('<SHELL>', 'for which shell').choices(SHELLS))
    .summary('print a completion script for the shell')
    .description('Prints a script that completes commands, options, values and ids.')
    .addHelpText('after', MORE)
    .action(async (shell: Shell) => stdout.write((await import('../shells.ts')).SHELL_SCRIPTS[shell]))

  program
    .command('__complete <SHELL> [WORD...]', { hidden: true })
    .allowUnknownOption()
    .helpOption(false)
    .action(async (shell: Shell, given: string[]) => {
      const words = shell === 'bash' ? joinBroken(given) : given
      const completion = complete(program, words)
      if (completion.kind === 'files' || completion.kind === 'folders')
        return stdout.write(`${completion.kind}\n`)
      const candidates =
        completion.kind === 'words'
          ? completion.candidates
          : (await knownIds(session, completion.of, (words.at(-1) ?? '').slice(completion.prefix.length)))
              // One that stands in the same list already is not offered again.
              .filter(({ value }) => !completion.prefix.includes(value))
              .map(({ value, description }) => ({ value: completion.prefix + value, description }))
              .filter(({ value }) => value.startsWith(words.at(-1) ?? ''))
      const before = shell === 'bash' ? brokenOff(given, words) : 0
      const shown = candidates.map(({ value, description }) => ({ value: value.slice(before), description }))
      const lines = shown.map(({ value, description }) => `${value}\t${description}\n`)
      await stdout.write(`words\n${lines.join('')}`)
    })
}

/** Bash breaks words at "=" and ":"; this puts `--tier = small` together again. */
function joinBroken(words: readonly string[]): string[] {
  const joined: string[] = []
  let open = false
  for (const word of words) {
    const sign = word === '=' || word === ':'
    if (joined.length > 0 && (sign || open)) joined.push(`${joined.pop()}${word}`)
    else joined.push(word)
    open = sign
  }
  return joined
}

/** Of the word at the cursor, the characters up to its last "=" or ":": bash replaces only what stands behind. */
function brokenOff(given: readonly string[], words: readonly string[]): number {
  const last = given.at(-1) ?? ''
  return (words.at(-1) ?? '').length - (last === '=' || last === ':' ? 0 : last.length)
}

/** Asks for what there is, with what describes it beside its id. */
type List = (client: Client, signal: AbortSignal, typed: string) => Promise<Candidate[]>

/** The lists of the API. */
const LISTS: Record<Exclude<Known, KnownToControl | 'logins'>, List> = {
  servers: async (client, signal) => {
    const { servers } = await client.request<{ servers: Server[] }>('GET', '/servers', { signal })
    return servers.map(({ id, task, status }) => ({
      value: id,
      description: task ? `${status}, ${task}` : status,
    }))
  },
  tasks: async (client, signal) => {
    const [{ listTasks }, { shortened }] = await Promise.all([
      import('../tasks/find.ts'),
      import('../tasks/show.ts'),
    ])
    const tasks = await listTasks(client, undefined, signal)
    return tasks.map(({ id, status, goal }) => ({ value: id, description: `${status}, ${shortened(goal)}` }))
  },
  builds: async (client, signal) => {
    const { servers } = await client.request<{ servers: Server[] }>('GET', '/servers', { signal })
    const lists = await Promise.all(
      servers.map(({ id }) =>
        client.request<{ builds: Build[] }>('GET', path`/servers/${id}/builds`, { signal }),
      ),
    )
    return lists.flatMap(({ builds }) =>
      builds.map((build) => ({
        value: build.id,
        description: `${buildStatus(build)}, ${build.goal.slice(0, 60)}`,
      })),
    )
  },
  projects: async (client, signal, typed) => {
    const all = await projectsOf(client, signal)
    // No slug begins so: who types it wants an id.
    if (typed.startsWith('prj_')) return all.map(described)
    return all.map((project) => ({ ...described(project), value: project.slug }))
  },
  'project ids': async (client, signal) => (await projectsOf(client, signal)).map(described),
  templates: async (client, signal) => {
    const { templates } = await client.request<{ templates: ProjectTemplate[] }>('GET', '/templates', {
      signal,
    })
    return templates.map(({ id, label }) => ({ value: id, description: label }))
  },
  keys: async (client, signal) => {
    const { keys } = await client.request<{ keys: ApiKey[] }>('GET', '/keys', { signal })
    return keys.map(({ id, label }) => ({ value: id, description: label }))
  },
  webhooks: async (client, signal) => {
    const { webhooks } = await client.request<{ webhooks: Webhook[] }>('GET', '/webhooks', { signal })
    return webhooks.map(({ id, url }) => ({ value: id, description: url }))
  },
  events: async () => EVENT_NAMES.map((value) => ({ value, description: '' })),
}

/** The lists of the control API. */
const CONTROL_LISTS: Record<KnownToControl, List> = {
  accounts: async (client, signal) => {
    const answer = await client.request<{ accounts: Account[] }>('GET', '/_berth/accounts', { signal })
    return answer.accounts.map(({ id, label }) => ({ value: id, description: label }))
  },
  deliveries: async (client, signal) => {
    const query = { limit: '100' }
    const answer = await client.request<{ deliveries: Delivery[] }>('GET', '/_berth/deliveries', {
      query,
      signal,
    })
    return answer.deliveries.map(({ id, status, event }) => ({
      value: id,
      description: `${status}, ${event}`,
    }))
  },
  snapshots: async (client, signal) => {
    const { snapshots } = await client.request<{ snapshots: Snapshot[] }>('GET', '/_berth/snapshots', {
      signal,
    })
    return snapshots.map(({ name, created_at }) => ({ value: name, description: created_at }))
  },
  inboxes: async (client, signal) => {
    const { inboxes } = await client.request<{ inboxes: InboxSummary[] }>('GET', '/_berth/inbox', { signal })
    return inboxes.map(({ name, last_received_at }) => ({ value: name, description: last_received_at }))
  },
  faults: async (client, signal) => {
    const { faults } = await client.request<{ faults: Fault[] }>('GET', '/_berth/faults', { signal })
    const { effectText, matchText } = await import('../faults/show.ts')
    return faults.map(({ id, match, effect }) => ({
      value: id,
      description: `${matchText(match)}: ${effectText(effect)}`,
    }))
  },
}

const isKnownToControl = (of: Known): of is KnownToControl => Object.hasOwn(CONTROL_LISTS, of)

const projectsOf = async (client: Client, signal: AbortSignal): Promise<Project[]> =>
  (await client.request<{ projects: Project[] }>('GET', '/projects', { signal })).projects

const described = (project: Project): Candidate => ({
  value: project.id,
  description: `${statusOf(project)}, ${project.name}`,
})

/** The instances that this user is signed in to, which need not run. */
const knownLogins = async (session: Session): Promise<Candidate[]> =>
  (await import('../login/whoami.ts'))
    .rememberedLogins(session)
    .map(({ base_url, label }) => ({ value: base_url, description: label }))

/** The ids that the running instance knows. Nothing where none answers: a TAB must not print errors. */
async function knownIds(session: Session, of: Known, typed: string): Promise<Candidate[]> {
  try {
    if (of === 'logins') return await knownLogins(session)
    const control = isKnownToControl(of)
    const client = await (control ? connectControl : connect)(session, {})
    const list = control ? CONTROL_LISTS[of] : LISTS[of]
    const found = await list(client, AbortSignal.timeout(IDS_WITHIN_MS), typed)
    return found.map(({ value, description }) => ({ value, description: description.replace(/\s+/g, ' ') }))
  } catch {
    return []
  }
}
