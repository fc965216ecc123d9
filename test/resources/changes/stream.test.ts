import { expect, test } from 'bun:test'
import {
  type ChangeMessage,
  type StreamSignal,
  streamChanges,
} from '../../../src/resources/changes/stream.ts'
import { ChangeNotifier } from '../../../src/runtime/change-notifier.ts'
import { until } from '../../support/processes.ts'

type Sent = ChangeMessage | StreamSignal

/** A stream of what a notifier tells of one account, whose reader may be slow. */
function opened() {
  const notifier = new ChangeNotifier<'thing'>()
  const values = new Map<string, number>()
  const sent: Sent[] = []
  const stop = new AbortController()
  let room: PromiseWithResolvers<void> | null = null
  let reads = 0
  const done = streamChanges(
    {
      watch: (watcher) => notifier.watch('acct', watcher),
      read({ type, id }) {
        reads += 1
        return { type, id, value: values.get(id) ?? null }
      },
    },
    (message) => {
      sent.push(message)
      return room?.promise
    },
    stop.signal,
  )
  return {
    notifier,
    sent,
    get reads() {
      return reads
    },
    change(id: string, value: number | null, account = 'acct') {
      if (value === null) values.delete(id)
      else values.set(id, value)
      notifier.notify('thing', id, account)
    },
    /** Has each further message wait until `resume`. */
    stall() {
      room = Promise.withResolvers()
    },
    resume() {
      room?.resolve()
      room = null
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      room?.resolve()
      await done
      expect(notifier.isWatched('acct')).toBe(false)
    },
  }
}

const about = (id: string, value: number | null): Sent => ({ type: 'thing', id, value })

test('changes of one object at a time are one message with its last value, others keep their order', async () => {
  await using stream = opened()
  for (let n = 1; n <= 1_000; n += 1) stream.change('a', n)
  stream.change('b', 1)
  stream.change('a', null)
  stream.change('unseen', 1, 'other')
  stream.change('c', 1)
  await until(() => stream.sent.length === 4, 'all messages')
  expect(stream.sent).toEqual([{ type: 'ready' }, about('a', null), about('b', 1), about('c', 1)])
  expect(stream.reads).toBe(3)
})

test('a slow reader is sent the newest state of each object once it reads, and nothing is read before', async () => {
  await using stream = opened()
  await until(() => stream.sent.length === 1, 'the first message')
  stream.stall()
  stream.change('first', 0)
  await until(() => stream.sent.length === 2, 'the message that is not read')
  for (let round = 1; round <= 100; round += 1)
    for (let id = 0; id < 100; id += 1) stream.change(`thing ${id}`, round)
  expect(stream.reads).toBe(1)
  stream.resume()
  await until(() => stream.sent.length === 102, 'one message for each object')
  expect(stream.sent.slice(2)).toEqual(Array.from({ length: 100 }, (_, id) => about(`thing ${id}`, 100)))
  expect(stream.reads).toBe(101)
})

test('a reader for which more than 10,000 objects wait receives a gap, and then what changes later', async () => {
  await using stream = opened()
  await until(() => stream.sent.length === 1, 'the first message')
  stream.stall()
  stream.change('first', 0)
  await until(() => stream.sent.length === 2, 'the message that is not read')
  for (let id = 0; id < 50_000; id += 1) stream.change(`thing ${id}`, id)
  stream.resume()
  await until(() => stream.sent.length === 3, 'the gap')
  stream.change('later', 1)
  await until(() => stream.sent.length === 4, 'what changed later')
  expect(stream.sent.slice(2)).toEqual([{ type: 'gap' }, about('later', 1)])
  // Nothing of what was dropped has been read.
  expect(stream.reads).toBe(2)
})
