import { expect, test } from 'bun:test'
import type { Command } from 'commander'
import { CATALOG } from '../../src/cli/commands/index.ts'
import { processContext } from '../../src/cli/process-context.ts'
import { createProgram, newSession } from '../../src/cli/program.ts'
import { describeControl } from '../../src/instance/describe.ts'
import { operationsOf } from '../support/openapi-rules.ts'

/** The command for each call of the control API, or why it has none. */
const VERBS: Readonly<Record<string, string | { none: string }>> = {
  'control.health': { none: 'for health checks of containers; "berth doctor" tells a person more' },
  'control.ready': { none: 'for health checks of containers; commands find an instance that is ready' },
  'control.accounts.list': 'accounts list',
  'control.accounts.create': 'accounts create',
  'control.accounts.update': 'accounts update',
  'control.accounts.delete': 'accounts delete',
  'control.signInLinks.create': 'open',
  'control.clock.read': 'clock show',
  'control.clock.move': 'clock advance',
  'control.scenarios.list': 'scenarios list',
  'control.scenarios.preview': 'scenarios preview',
  'control.scenarios.replace': 'scenarios set',
  'control.scenarios.add': 'scenarios add',
  'control.scenarios.delete': 'scenarios delete',
  'control.scenarios.clear': 'scenarios clear',
  'control.tasks.scenario': 'scenarios record',
  'control.tasks.release': 'tasks release',
  'control.events.list': 'events list',
  'control.events.emit': 'trigger',
  'control.localWebhooks.get': 'webhooks local',
  'control.localWebhooks.update': 'webhooks local',
  'control.deliveries.list': 'deliveries list',
  'control.deliveries.summary': 'deliveries summary',
  'control.deliveries.get': 'deliveries get',
  'control.deliveries.retry': 'deliveries retry',
  'control.instance.wait': {
    none: 'for tests; commands that begin something follow it to its end by themselves',
  },
  'control.inbox.receive': { none: 'webhooks post there; "berth trigger" has them do so' },
  'control.inbox.list': 'inbox list',
  'control.inbox.read': 'inbox get',
  'control.inbox.clear': 'inbox clear',
  'control.inbox.clearAll': 'inbox clear',
  'control.faults.list': 'faults list',
  'control.faults.add': 'faults add',
  'control.faults.clear': 'faults clear',
  'control.faults.delete': 'faults delete',
  'control.servers.export': 'servers export',
  'control.servers.import': 'servers import',
  'control.servers.move': 'servers move',
  'control.servers.recover': 'servers recover',
  'control.serverNetwork.get': 'servers network',
  'control.serverNetwork.update': 'servers network',
  'control.serverFaults.list': 'faults server',
  'control.serverFaults.add': 'faults server',
  'control.serverFaults.lift': 'faults lift',
  'control.serverFaults.clear': 'faults lift',
  'control.fixtures.list': 'fixtures list',
  'control.fixtures.apply': 'up',
  'control.fixtures.schema': { none: '"berth fixtures schema" prints it without an instance' },
  'control.changes.stream': 'changes',
  'control.requests.list': 'logs',
  'control.requests.get': 'logs',
  'control.requests.errors': 'logs',
  'control.requests.clear': 'logs',
  'control.instance.reset': 'reset',
  'control.snapshots.list': 'snapshot list',
  'control.snapshots.create': 'snapshot save',
  'control.snapshots.diff': 'snapshot diff',
  'control.snapshots.restore': 'snapshot restore',
  'control.snapshots.delete': 'snapshot delete',
}

const program = createProgram(newSession(processContext(), CATALOG), CATALOG)
// The document of the control API has ids without their prefix.
const ids = operationsOf(await describeControl()).map(({ operationId }) => `control.${operationId}`)

/** The command that words name, by its name or an alias. */
const find = (words: readonly string[]): Command | undefined =>
  words.reduce<Command | undefined>(
    (command, word) => command?.commands.find((one) => one.name() === word || one.aliases().includes(word)),
    program,
  )

test('every call of the control API has a command, or a reason to have none', () => {
  expect(ids.filter((id) => !(id in VERBS))).toEqual([])
  expect(Object.keys(VERBS).filter((id) => !ids.includes(id))).toEqual([])
})

test.each(Object.entries(VERBS).filter(([, verb]) => typeof verb === 'string'))(
  '%s is "berth %s", which takes the admin token',
  (_id, verb) => {
    const command = find(String(verb).split(' '))
    expect(command).toBeDefined()
    expect(command?.options.map(({ long }) => long)).toContain('--admin-token')
  },
)
