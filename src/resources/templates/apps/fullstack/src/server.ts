import { createApp } from './app.ts'
import { Poll } from './poll.ts'

const {
  HOST = '127.0.0.1',
  PORT = '3000',
  NODE_ENV,
  QUESTION = 'Where should we eat on Friday?',
  OPTIONS = 'Ramen, Tacos, Pizza, Picnic in the park',
} = process.env

/**
 * With `bun --hot` this file and what it imports run again when they change, in the same process: what is kept here
 * outlives that. A change of `Poll` itself needs a restart.
 */
const kept = globalThis as typeof globalThis & { poll?: Poll; stop?: () => Promise<void> }
kept.poll ??= new Poll(
  QUESTION,
  OPTIONS.split(',').map((label) => label.trim()),
)

const server = createApp({
  hostname: HOST,
  port: Number(PORT),
  poll: kept.poll,
  development: NODE_ENV !== 'production',
})

if (!kept.stop) {
  console.log(`Listening on ${server.url}`)
  process.on('SIGTERM', () => kept.stop?.())
  process.on('SIGINT', () => kept.stop?.())
}
/** Takes no new connection, lets requests under way end, cuts off pages that wait for changes, exits. */
kept.stop = async () => {
  await Promise.race([server.stop(), Bun.sleep(500)])
  process.exit(0)
}
