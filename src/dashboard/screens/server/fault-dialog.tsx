import { useState } from 'preact/hooks'
import type { PartsOf } from '../../../route-client/client.ts'
import { serverLabel } from '../../components/copy.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { FieldError, SelectField, TextField } from '../../components/field.tsx'
import { CommandLines, shellQuoted } from '../../components/http.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Server } from '../../store/store.ts'

type ServerFaultCreate = PartsOf<'control.serverFaults.add'>['body']
type Kind = ServerFaultCreate['kind']

/** What may go wrong inside a server, with the fields that each takes. */
export const SERVER_FAULTS: Readonly<
  Record<Kind, { label: string; about: string; fields: readonly FieldName[] }>
> = {
  crash: { label: 'Crash', about: 'All processes are killed, and the server sleeps.', fields: [] },
  oom: {
    label: 'Out of memory',
    about: 'A process takes all memory until it is ended; with a number, the next commands do.',
    fields: ['times'],
  },
  disk_full: { label: 'Disk full', about: 'No file can grow, by a command or the API.', fields: ['for_ms'] },
  hang: {
    label: 'Hang',
    about: 'All processes stop. Commands do not end, and time out.',
    fields: ['for_ms'],
  },
  slow_exec: {
    label: 'Slow commands',
    about: 'Each command waits before it begins.',
    fields: ['delay_ms', 'times', 'for_ms'],
  },
  network: {
    label: 'Bad network',
    about: 'What leaves the server is lost, late or refused.',
    fields: ['network', 'hosts', 'for_ms'],
  },
}

type FieldName = 'times' | 'for_ms' | 'delay_ms' | 'network' | 'hosts'

/** How a network may be bad. */
const NETWORKS = [
  { value: 'offline', label: 'Offline: nothing passes', given: { offline: true }, flags: '--offline' },
  { value: 'refused', label: 'Connections are refused', given: { refused: true }, flags: '--refuse' },
  {
    value: 'slow',
    label: 'Slow: 200 ± 50 ms later',
    given: { latency_ms: 200, jitter_ms: 50 },
    flags: '--latency 200ms --jitter 50ms',
  },
  { value: 'lossy', label: '5 % of the packets are lost', given: { loss: 0.05 }, flags: '--loss 0.05' },
  {
    value: 'mobile',
    label: 'Both: slow, and 5 % lost',
    given: { latency_ms: 200, jitter_ms: 50, loss: 0.05 },
    flags: '--latency 200ms --jitter 50ms --loss 0.05',
  },
] as const

const DURATIONS = [
  { value: '', label: 'until it is lifted' },
  { value: '5000', label: 'for 5 s' },
  { value: '30000', label: 'for 30 s' },
  { value: '300000', label: 'for 5 min' },
]

/** Asks for a fault inside a server, and sets it. */
export function ServerFaultDialog({ server, onClose }: { server: Server; onClose: () => void }) {
  const { api, notices } = useDashboard()
  const [kind, setKind] = useState<Kind>('slow_exec')
  const [times, setTimes] = useState('')
  const [delay, setDelay] = useState('2000')
  const [duration, setDuration] = useState('')
  const [network, setNetwork] = useState<string>(NETWORKS[0].value)
  const [hosts, setHosts] = useState('')
  const { label, about, fields } = SERVER_FAULTS[kind]
  const takes = (field: FieldName): boolean => fields.includes(field)
  const bad = NETWORKS.find(({ value }) => value === network) ?? NETWORKS[0]
  const named = hosts.split(/[\s,]+/).filter(Boolean)
  const body = {
    kind,
    ...(takes('times') && times !== '' && { times: Number(times) }),
    ...(takes('delay_ms') && { delay_ms: Number(delay) }),
    ...(takes('network') && bad.given),
    ...(takes('hosts') && named.length > 0 && { hosts: named }),
    ...(takes('for_ms') && duration !== '' && { for_ms: Number(duration) }),
  } as ServerFaultCreate
  const words = [
    `berth faults server ${server.id} ${kind}`,
    takes('times') && times !== '' && `--times ${shellQuoted(times)}`,
    takes('delay_ms') && `--delay ${shellQuoted(delay)}ms`,
    takes('network') && bad.flags,
    ...(takes('hosts') ? named.map((host) => `--host ${shellQuoted(host)}`) : []),
    takes('for_ms') && duration !== '' && `--for ${Number(duration) / 1_000}s`,
  ]
  const make = async (): Promise<void> => {
    if (takes('times')) check('times', times, 'a whole number of commands, or nothing')
    if (takes('delay_ms')) check('delay_ms', delay || 'none', 'milliseconds, such as 2000')
    await api.call('control.serverFaults.add', { params: { serverId: server.id }, body })
    notices.done(
      kind === 'crash' ? `${serverLabel(server.id, server.task)} has crashed.` : `${label} is in effect.`,
    )
  }
  return (
    <FormDialog
      title="Make something fail"
      action={kind === 'crash' ? 'Crash the server' : 'Make it so'}
      isDangerous={kind === 'crash'}
      onSubmit={make}
      onClose={onClose}
      commands={
        <CommandLines
          berth={words.filter(Boolean).join(' ')}
          method="POST"
          path={`/_berth/servers/${server.id}/fault`}
          body={body}
        />
      }
    >
      <SelectField
        name="kind"
        label="What goes wrong"
        hint={about}
        value={kind}
        onValue={(value) => setKind(value as Kind)}
        choices={Object.entries(SERVER_FAULTS).map(([value, one]) => ({ value, label: one.label }))}
      />
      {takes('network') && (
        <SelectField
          name="network"
          label="How"
          value={network}
          onValue={setNetwork}
          choices={NETWORKS.map(({ value, label }) => ({ value, label }))}
        />
      )}
      {takes('hosts') && (
        <TextField
          name="hosts"
          label="Only with these hosts"
          hint="Names, addresses or patterns such as *.example.com:443. Empty: with all."
          value={hosts}
          onValue={setHosts}
        />
      )}
      {takes('delay_ms') && (
        <TextField name="delay_ms" label="Milliseconds" value={delay} onValue={setDelay} isRequired />
      )}
      {takes('times') && (
        <TextField
          name="times"
          label="For how many commands"
          hint={kind === 'oom' ? 'Empty: a process of its own, at once.' : 'Empty: for all.'}
          value={times}
          onValue={setTimes}
        />
      )}
      {takes('for_ms') && (
        <SelectField
          name="for_ms"
          label="How long"
          value={duration}
          onValue={setDuration}
          choices={DURATIONS}
        />
      )}
    </FormDialog>
  )
}

/**
 * Checks the text of a field for numbers.
 *
 * @throws FieldError if it is neither empty nor a number
 */
function check(field: FieldName, text: string, expected: string): void {
  if (!/^\d*$/.test(text)) throw new FieldError(field, `Expected ${expected}.`)
}
