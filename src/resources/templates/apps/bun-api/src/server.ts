import { createApi } from './api.ts'
import { TaskStore } from './tasks.ts'

const server = createApi({
  hostname: process.env.HOST ?? '127.0.0.1',
  port: wholeNumber('PORT', 3000),
  tasks: new TaskStore(wholeNumber('MAX_TASKS', 1_000)),
})
console.log(`Listening on ${server.url}`)

/** Takes no new connection, lets requests under way end for up to 5 seconds, then exits. */
async function stop(): Promise<void> {
  setTimeout(() => server.stop(true), 5_000).unref()
  await server.stop()
  process.exit(0)
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)

/** A setting of the environment. Ends the process where it is not a whole number. */
function wholeNumber(name: string, fallback: number): number {
  const value = Number(process.env[name] || fallback)
  if (Number.isInteger(value) && value >= 0) return value
  console.error(`${name} is ${JSON.stringify(process.env[name])}; it must be a whole number.`)
  process.exit(1)
}
