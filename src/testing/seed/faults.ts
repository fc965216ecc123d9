import { Given, Mistake } from '../../contract/given.ts'
import { API_OPERATION_IDS } from '../../contract/operations.ts'
import type { FaultText } from '../faults/fault.ts'
import { readFaults } from '../faults/read.ts'

/** A fault of a file: the account is named there, and has no id yet. */
export interface FaultFixture {
  readonly fault: FaultText
  readonly account?: string
}

const closed = (properties: object, required: readonly string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

/** In a file they may stand in any case; editors offer these. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

const effects = {
  error: closed(
    {
      status: { type: 'integer', minimum: 400, maximum: 599 },
      code: { type: 'string', pattern: '\\S', description: 'By default what the API says with this status.' },
      message: { type: 'string', pattern: '\\S' },
    },
    ['status'],
  ),
  delay_ms: { type: 'integer', minimum: 0, maximum: 3_600_000, description: 'Physical time.' },
  disconnect: { const: true, description: 'The connection is cut, without an answer.' },
  backend: { const: 'fail', description: 'The compute driver fails whatever the request asks of it.' },
}

/** What a fault looks like, as JSON Schema (draft 7), for editors. `http/faults/read.ts` decides; a test compares. */
export const faultShape = closed(
  {
    match: {
      type: 'object',
      properties: {
        operation: { enum: API_OPERATION_IDS },
        method: { enum: METHODS },
        path: {
          type: 'string',
          pattern: '^[/*][^?]*$',
          description: 'Exactly, or * or {id} for what stands between two slashes, ** for anything.',
        },
        account: { type: 'string', description: 'Name of an account of the files.' },
      },
      additionalProperties: false,
      description: 'Which requests are meant; {} for all.',
    },
    effect: {
      anyOf: Object.entries(effects).map(([name, shape]) => closed({ [name]: shape }, [name])),
      description: 'What happens to them.',
    },
    times: { type: 'integer', minimum: 1, maximum: 1_000_000_000, description: 'How often it strikes.' },
    after: { type: 'integer', minimum: 0, maximum: 1_000_000_000, description: 'How many pass before.' },
    probability: { type: 'number', minimum: 0, maximum: 1 },
    seed: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  },
  ['match', 'effect'],
)

/** Reads the faults of a file, with the place of each. @throws Mistake for whatever no fault has */
export function readFixtureFaults(given: Given): [at: Given, fault: FaultFixture][] {
  const entries = given.list('a list of faults')
  const accounts = entries.map((entry) => {
    const id = entry.field('match')?.field('account_id')
    if (id) throw new Mistake(id.place, 'a file gives the name of the account, in "account".', 'key')
    return entry.field('match')?.field('account')?.filledText('the name of an account')
  })
  const faults = readFaults(new Given(entries.map(withoutAccount), given.place))
  return entries.map((entry, index) => {
    const account = accounts[index]
    const fault = faults[index] as FaultText
    return [entry, account === undefined ? { fault } : { fault, account }]
  })
}

/** A fault as the control API takes it. */
function withoutAccount(entry: Given): unknown {
  const match = entry.field('match')
  if (!match?.isObject) return entry.value
  const { account: _, ...rest } = match.value as Record<string, unknown>
  return { ...(entry.value as object), match: rest }
}
