import { ComputeError, type LoopbackAddress } from '../driver.ts'

/** Most addresses taken from one answer. */
const MAX_ADDRESSES = 10_000

/** Reads an answer of `listening`. Throws `ComputeError` if it is none. */
export function readAddresses(value: unknown): LoopbackAddress[] | null {
  if (value === null) return null
  if (!Array.isArray(value) || value.length > MAX_ADDRESSES) throw wrongAnswer('listening')
  return value.map((entry: unknown) => {
    const { host, port } = fields(entry)
    const isAddress = host === '127.0.0.1' || host === '::1'
    if (!isAddress || !isCount(port) || port < 1 || port > 65_535) throw wrongAnswer('listening')
    return { host, port }
  })
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

function wrongAnswer(service: string): ComputeError {
  return new ComputeError(`sandboxd answered "${service}" in another form than expected.`)
}
