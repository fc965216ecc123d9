import { InvalidArgumentError } from 'commander'
import { UsageError } from '../../errors.ts'
import { OWN_CLIENTS } from '../../http/own-client.ts'
import { EVENT_NAMES } from '../../resources/events/names.ts'
import type { PartsOf, ResponseOf } from '../../route-client/client.ts'
import { SERVER_FAULT_KINDS } from '../../testing/names.ts'
import type { Client } from '../client.ts'
import { action, call, type Noun, rows } from '../command.ts'
import type { Named, NameWords } from '../names.ts'
import {
  choiceOption,
  duration,
  flag,
  type OptionsOf,
  parsed,
  repeatedOption,
  textOption,
  wholeNumber,
} from '../options.ts'
import { count } from '../output.ts'
import type { Column } from '../table.ts'

type Fault = ResponseOf<'control.faults.list'>['faults'][number]
type ServerFault = ResponseOf<'control.serverFaults.list'>['faults'][number]

const COLUMNS: readonly Column<Fault>[] = [
  { heading: 'ID', cell: ({ id }) => id },
  { heading: 'REQUESTS', cell: ({ match }) => matchText(match), elastic: true },
  { heading: 'EFFECT', cell: ({ effect }) => effectText(effect) },
  { heading: 'WHEN', cell: whenText, elastic: true },
  { heading: 'MATCHED', cell: ({ matched }) => String(matched), right: true, minor: 1 },
  { heading: 'STRUCK', cell: ({ hits }) => String(hits), right: true },
]

const SERVER_FAULT_COLUMNS: readonly Column<ServerFault>[] = [
  { heading: 'KIND', cell: ({ kind }) => kind },
  { heading: 'HOW', cell: durationText },
]

/** Returns the requests that a fault matches: `exec.run`, `POST /servers/*`, `all`. */
function matchText({ operation, method, path, account_id, client, deliveries }: Fault['match']): string {
  const sent = deliveries && [
    'deliveries',
    deliveries.event && `of ${deliveries.event}`,
    deliveries.webhook_id && `to ${deliveries.webhook_id}`,
  ]
  const parts = [
    ...(sent ?? []),
    operation,
    method,
    path,
    account_id && `of ${account_id}`,
    client && `from the ${client}`,
  ]
  return parts.filter(Boolean).join(' ') || 'all'
}

/** Returns the effect of a fault: `503 service_unavailable`, `wait 500 ms`. */
export function effectText(effect: Fault['effect']): string {
  if ('error' in effect) return [effect.error.status, effect.error.code].filter(Boolean).join(' ')
  if ('delay_ms' in effect) return `wait ${effect.delay_ms} ms`
  if ('respond' in effect)
    return [effect.respond.status, effect.respond.content_type].filter(Boolean).join(' ')
  if ('truncate' in effect) return `cut after ${count(effect.truncate.bytes, 'byte')}`
  if ('lose_response' in effect) return 'response lost'
  return 'disconnect' in effect ? 'disconnect' : 'backend fails'
}

/** Returns a fault in a line: `exec.run: 502`. */
const faultText = ({ match, effect }: Fault): string => `${matchText(match)}: ${effectText(effect)}`

/** Returns when a fault applies: `2 times after 1, chance 0.3 (seed 7)`. */
function whenText({ times, after, probability, seed }: Fault): string {
  const often = times === null ? 'always' : count(times, 'time')
  const first = after === 0 ? often : `${often} after ${after}`
  return probability === 1 ? first : `${first}, chance ${probability} (seed ${seed})`
}

/** Returns how long a fault inside a server lasts: `500 ms for each command, 2 commands left`. */
function durationText(fault: ServerFault): string {
  const { delay_ms, times_left, for_ms, offline, refused, latency_ms, jitter_ms, loss, hosts } = fault
  const parts = [
    offline ? 'offline' : '',
    refused ? 'names and connections refused' : '',
    latency_ms === undefined ? '' : `responses ${latency_ms} ms later`,
    jitter_ms === undefined ? '' : `varying by ${jitter_ms} ms`,
    loss === undefined ? '' : `${Math.round(loss * 1000) / 10} % of the packets lost`,
    hosts === undefined ? '' : `only ${hosts.join(' ')}`,
    delay_ms === undefined ? '' : `${delay_ms} ms for each command`,
    times_left === undefined ? '' : `${count(times_left, 'command')} left`,
    for_ms === undefined ? '' : `for ${for_ms} ms`,
  ].filter(Boolean)
  return parts.length === 0 ? 'until it is lifted' : parts.join(', ')
}

const matches = {
  operation: textOption('OPERATION', 'an operation, such as exec.run'),
  method: choiceOption('METHOD', 'a method', ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']),
  path: textOption('PATH', 'a path, or a glob of paths such as "/servers/*/exec"'),
  account: textOption('ACCOUNT', 'the requests of one account'),
  deliveries: flag('attempts to deliver events to webhooks, in place of requests'),
  webhook: textOption('WEBHOOK', 'the deliveries to one webhook'),
  event: choiceOption('EVENT', 'the deliveries of one kind of event', EVENT_NAMES),
  client: choiceOption('CLIENT', "the requests of one of berth's own clients", OWN_CLIENTS),
}

const effects = {
  error: wholeNumber('STATUS', 'respond with this status, 400 to 599'),
  code: textOption('CODE', 'the code in that response'),
  message: textOption('TEXT', 'the sentence in that response'),
  retryAfter: wholeNumber('SECONDS', 'Retry-After of that response (default 1 with 429 and 503)'),
  respond: wholeNumber('STATUS', 'respond with this status, 200 to 599, and exactly the following'),
  contentType: textOption('TYPE', 'the media type of that response, such as text/html'),
  body: textOption('TEXT', 'the body of that response'),
  header: repeatedOption('NAME: VALUE', 'a header with --error or --respond; repeatable'),
  delay: duration('TIME', 'wait first, such as 500ms'),
  disconnect: flag('cut the connection without a response, and do nothing'),
  loseResponse: flag('do everything, then cut the connection in place of the response'),
  truncate: wholeNumber('BYTES', 'cut the connection after so many bytes of the body', { least: 1 }),
  backendFail: flag('have the compute backend fail'),
}

/** Parses a share. @throws InvalidArgumentError */
function shareOf(given: string): number {
  const number = given.trim() === '' ? Number.NaN : Number(given)
  if (number >= 0 && number <= 1) return number
  throw new InvalidArgumentError('Expected a number from 0 to 1.')
}

const timing = {
  times: wholeNumber('N', 'how often it applies (default always)'),
  after: wholeNumber('N', 'how many requests pass first (default 0)'),
  probability: parsed('P', 'how likely it applies, 0 to 1 (default 1)', shareOf),
  seed: wholeNumber('N', 'what decides then: the same seed, the same requests'),
}

/** An effect. Undefined fields are not sent. */
type Effect = NonNullable<PartsOf<'control.faults.add'>['body']>['effect']

/**
 * Returns the effect that the options describe.
 *
 * @throws UsageError if there is none, or several
 */
function effectOf({
  error,
  code,
  message,
  delay,
  retryAfter,
  respond,
  contentType,
  body,
  header,
  disconnect,
  loseResponse,
  truncate,
  backendFail,
}: OptionsOf<typeof effects>): Effect {
  if (error === undefined && (code !== undefined || message !== undefined || retryAfter !== undefined)) {
    throw new UsageError('--code, --message and --retry-after belong to --error: give its status too.')
  }
  if (respond === undefined && (contentType !== undefined || body !== undefined)) {
    throw new UsageError('--content-type and --body belong to --respond: give its status too.')
  }
  if (error === undefined && respond === undefined && header !== undefined) {
    throw new UsageError('--header belongs to --error or --respond: give one with its status too.')
  }
  const headers = header && Object.fromEntries(header.map(headerOf))
  const given = [
    error === undefined
      ? null
      : { error: { status: error, code, message, retry_after: retryAfter, headers } },
    respond === undefined ? null : { respond: { status: respond, content_type: contentType, headers, body } },
    delay === undefined ? null : { delay_ms: delay },
    disconnect ? { disconnect: true as const } : null,
    loseResponse ? { lose_response: true as const } : null,
    truncate === undefined ? null : { truncate: { bytes: truncate } },
    backendFail ? { backend: 'fail' as const } : null,
  ].filter((effect) => effect !== null)
  const [effect, second] = given
  if (effect === undefined) {
    throw new UsageError(
      'Say what happens: --error STATUS, --respond STATUS, --delay TIME, --disconnect, --lose-response, --truncate BYTES or --backend-fail.',
    )
  }
  if (second === undefined) return effect
  throw new UsageError('One fault has one effect. Set a fault for each: delays add up with others.')
}

/** Splits a header: `Server: nginx`. @throws UsageError */
function headerOf(given: string): [name: string, value: string] {
  const [, name, value] = /^([^:\s]+):[ \t]*(.*)$/s.exec(given) ?? []
  if (name !== undefined && value !== undefined) return [name, value.trimEnd()]
  throw new UsageError(`--header: expected a name and a value, such as "Server: nginx", got "${given}".`)
}

const WORDS: NameWords = {
  one: 'fault',
  listedBy: 'berth faults',
  none: 'Set one with "berth faults add".',
}

/** `berth faults` */
export const faultsNoun: Noun = {
  name: 'faults',
  summary: 'have requests fail, wait or be cut off, and servers crash',
  description:
    'Has requests fail, wait or be cut off, and things go wrong inside servers. Plain "berth faults" lists what is set.',
  names: [{ placeholder: 'FAULT', words: WORDS, list: listNamed }],
  commands: [
    call('control.faults.list', {
      usage: 'list',
      description: 'list the faults of requests, with how often each applied',
      show: rows('faults', COLUMNS, 'No faults. Set one with "berth faults add".\n'),
    }),
    call('control.faults.add', {
      usage: 'add',
      aliases: ['create'],
      description: 'set a fault',
      options: { ...matches, ...effects, ...timing },
      help: `
Which requests it is for can be narrowed down in several ways at once; without any it is for all.
Of several faults all delays apply, and then the first other effect.

Examples:
  berth faults add --operation exec.run --error 502 --times 2 --after 1
  berth faults add --operation tasks.create --error 402
  berth faults add --path '/servers/*/files' --delay 500ms
  berth faults add --respond 502 --content-type text/html --body '<h1>502</h1>'
  berth faults add --operation tasks.create --lose-response --times 1
  berth faults add --webhook wh_… --error 503 --times 2
  berth faults add --error 503 --probability 0.3 --seed 7
  berth faults add --operation projects.init --backend-fail --times 1
`,
      request: async (_, options, { idOf }) => {
        const { operation, method, path, client, times, after, probability, seed } = options
        const effect = effectOf(options)
        const { webhook, event } = options
        const isOfDeliveries = options.deliveries || webhook !== undefined || event !== undefined
        const match = {
          ...{ operation, method, path, client, account_id: await idOf('ACCOUNT', options.account) },
          ...(isOfDeliveries && { deliveries: { webhook_id: webhook, event } }),
        }
        return { body: { match, effect, times, after, probability, seed } }
      },
      show: (made) => {
        const seed = made.probability === 1 ? '' : `, seed ${made.seed}`
        return `Set ${made.id} (${faultText(made)}${seed}).\n`
      },
    }),
    call('control.faults.delete', {
      usage: 'delete <FAULT>',
      description: 'remove a fault',
      request: async ([named], _, { idOf }) => ({ params: { faultId: await idOf('FAULT', named) } }),
      show: ({ id, hits, matched }) =>
        `Removed ${id}; it applied to ${hits} of ${count(matched, 'request')}.\n`,
    }),
    call('control.faults.clear', {
      usage: 'clear',
      description: 'remove all faults of requests',
      show: ({ deleted }) => `Removed ${count(deleted, 'fault')}.\n`,
    }),
    action({
      usage: 'server [SERVER] [KIND]',
      operations: ['control.serverFaults.add', 'control.serverFaults.list'],
      description: 'have something go wrong inside a server',
      access: 'control',
      arguments: { KIND: { description: 'what goes wrong', choices: SERVER_FAULT_KINDS } },
      options: {
        for: duration('TIME', 'how long it lasts, such as 5s (not for crash and oom)'),
        delay: duration('TIME', 'how long each command waits, such as 500ms (slow_exec)'),
        times: wholeNumber('N', 'for how many commands (slow_exec, oom)'),
        offline: flag('nothing leaves the server (network)'),
        refuse: flag('the names do not exist, connections are refused (network)'),
        latency: duration('TIME', 'responses arrive later, such as 200ms (network)'),
        jitter: duration('TIME', 'by how much that varies (network)'),
        loss: parsed('SHARE', 'packets that are lost, from 0 to 1 (network)', shareOf),
        host: repeatedOption('HOST', 'only for a host, such as *.example.com:443; repeatable (network)'),
        seed: wholeNumber('N', 'decides what is lost and how late (network)'),
      },
      help: `
  crash      all its processes are killed: it sleeps; the next command wakes it
  oom        a process runs out of memory; with --times the next commands do
  disk_full  its storage is full: no file can grow
  hang       its processes stop: commands do not end, and time out
  slow_exec  commands wait for --delay before they begin
  network    what leaves the server is lost, late or refused

Without a kind it lists those that last. A stop of the server ends them all.

Examples:
  berth faults server srv_… crash
  berth faults server srv_… slow_exec --delay 2s --times 3
  berth faults server srv_… hang --for 5s
  berth faults server srv_… network --latency 200ms --jitter 50ms --loss 0.02
  berth faults server srv_… network --refuse --host api.example.com
`,
      async run({ args: [kind], options, connect, server, print }) {
        const client = await connect()
        const serverId = await server()
        const params = { serverId }
        if (kind === undefined) {
          const none = `Nothing goes wrong inside ${serverId}.\n`
          const listed = await client.call('control.serverFaults.list', { params })
          return print(listed, rows('faults', SERVER_FAULT_COLUMNS, none))
        }
        const { offline, refuse, latency, jitter, loss } = options
        if (kind === 'network' && !offline && !refuse && !latency && !jitter && !loss) {
          throw new UsageError(
            'Say what happens to the network: --offline, --refuse, --latency TIME, --jitter TIME or --loss SHARE.',
          )
        }
        // The API checks which fields each kind takes.
        const body = {
          kind,
          for_ms: options.for,
          delay_ms: options.delay,
          times: options.times,
          offline: options.offline,
          refused: options.refuse,
          latency_ms: options.latency,
          jitter_ms: options.jitter,
          loss: options.loss,
          hosts: options.host,
          seed: options.seed,
        } as PartsOf<'control.serverFaults.add'>['body']
        return print(await client.call('control.serverFaults.add', { params, body }), (made) =>
          made.active
            ? `${kind} in ${serverId}: ${durationText(made)}.\n`
            : `${kind} in ${serverId}: it has happened.\n`,
        )
      },
    }),
    action({
      usage: 'lift [SERVER] [KIND]',
      operations: ['control.serverFaults.lift', 'control.serverFaults.clear'],
      description: 'end what goes wrong inside a server, all or one kind',
      access: 'control',
      arguments: { KIND: { description: 'what goes wrong', choices: SERVER_FAULT_KINDS } },
      async run({ args: [kind], connect, server, print }) {
        const client = await connect()
        const serverId = await server()
        const response =
          kind === undefined
            ? await client.call('control.serverFaults.clear', { params: { serverId } })
            : await client.call('control.serverFaults.lift', { params: { serverId, kind } })
        await print(response, ({ lifted }) => `Lifted ${lifted.join(', ') || 'nothing'}.\n`)
      },
    }),
  ],
}

async function listNamed(client: Client, signal?: AbortSignal): Promise<Named[]> {
  const { faults: all } = await client.call('control.faults.list', { signal })
  return all.map((fault) => ({ id: fault.id, description: faultText(fault) }))
}
